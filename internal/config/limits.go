package config

var limits = []setting[Config]{
	{"series_limit", func(d *document, e entry, c *Config) {
		if n, ok := d.count(e, "write a number of series such as 250000"); ok {
			c.Limits.Series = n
		}
	}},
	{"max_body", func(d *document, e entry, c *Config) {
		word, ok := d.word(e, "write a size such as 64MiB")
		if !ok {
			return
		}
		size, err := ParseSize(word)
		if err != nil {
			d.reject(e, "%v", err)
			return
		}
		c.Limits.MaxBody = size
	}},
	{"max_requests", func(d *document, e entry, c *Config) {
		if n, ok := d.count(e, "write a number of scrapes such as 40"); ok {
			c.Limits.MaxRequests = n
		}
	}},
}

func readLimits(d *document, e entry, c *Config) {
	readKeys(d, e, limits, c, "write limits such as series_limit: 250000")
}
