package trust

// KeyVariable is the environment variable in which a command with a side effect is given the idempotency key
// of its call. It is catalogd's own: neither a declaration nor a trust entry can set it.
const KeyVariable = "CATALOGD_IDEMPOTENCY_KEY"
