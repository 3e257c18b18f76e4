package trust

// KeyVariable is the environment variable with the idempotency key of a call, for a command with a side
// effect. Only catalogd sets it: declarations and trust entries can't.
const KeyVariable = "CATALOGD_IDEMPOTENCY_KEY"
