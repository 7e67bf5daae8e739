"""Who may do what: tokens with roles and subjects, rates, and addresses that webhooks may reach."""
