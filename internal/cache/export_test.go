package cache

// Weight returns the sum of the weights of what is cached.
func (c *Cache[K, V]) Weight() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.total
}
