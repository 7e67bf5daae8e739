"""Outgoing webhooks: subscriptions whose deliveries are posted to an address."""
