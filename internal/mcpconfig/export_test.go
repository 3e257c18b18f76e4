package mcpconfig

// SecretWords are what the proposals take for a secret's name.
var SecretWords = secretWords
