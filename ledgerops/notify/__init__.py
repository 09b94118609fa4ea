"""From an alert to a message with a cause: Alertmanager's webhook, the diagnosis of the query, senders."""
