"""Sends the ledger's stream: what is to be sent (`records`), when (`pacer`) and where (`kafka`, `landing`)."""
