package catalogd

// WithDefaults is what New makes of c.
func (c Config) WithDefaults() (Config, error) { return c.withDefaults() }
