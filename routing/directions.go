package routing

// reachable finds mappings whose every topic is taken by more specific ones.
func (c *compiler) reachable() {
	for _, r := range c.ups {
		c.table.levels = max(c.table.levels, len(r.pattern))
	}
	for _, r := range c.implicit {
		c.table.levels = max(c.table.levels, len(r.pattern))
	}
	for _, r := range c.ups {
		by := r
		for topic := range r.pattern.examples(c.table.levels + 1) {
			if by = c.table.root.match(topic); by == r {
				break
			}
		}
		if by != r {
			c.fault(r.path+".from.mqtt", "unreachable: %s and others take every topic first", by.path)
		}
	}
	u := c.opt.Unmatched
	if all := c.table.root.tail; all != nil && (u.Reject || u.Topic != "") {
		c.fault("unmatched", "unreachable: %s takes every topic", all.path)
	}
}

// readUp adds the down mappings that can be read upwards, where no mapping is written for those topics.
func (c *compiler) readUp() {
	shapes := map[string]int{}
	for _, r := range c.implicit {
		shapes[r.pattern.shape()]++
	}
	for _, r := range c.implicit {
		var other *upRule
		if shapes[r.pattern.shape()] == 1 {
			if other = c.table.root.insert(r); other == nil {
				c.rules(r.topic).up = append(c.rules(r.topic).up, r)
				continue
			}
		}
		if r.direction == Both {
			c.fault(r.path+".direction", "cannot be read backwards: another mapping has the same MQTT topics")
		}
	}
}

// readDown adds the up mappings that can be read downwards.
func (c *compiler) readDown() {
	for _, r := range c.ups {
		if r.direction == Up {
			continue
		}
		b, missing := r.backwards()
		switch {
		case missing == "":
			c.rules(r.topic).backward = append(c.rules(r.topic).backward, b)
		case r.direction == Both:
			c.fault(r.path+".direction", "cannot be read backwards: {%s} is found in neither key, tag nor properties", missing)
		}
	}
	if all := c.table.catchAll; all != nil && len(all.key) == 1 && all.key[0].kind == nameTopic && len(all.key[0].filters) == 0 {
		t := c.rules(all.topic)
		t.backward = append(t.backward, &backRule{up: all})
	}
}
