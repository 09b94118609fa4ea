"""Sends the ledger's stream: what is to be sent (`records`), when (`pace`) and where (`kafka`, `landing`) apart."""
