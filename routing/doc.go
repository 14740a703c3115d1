// Package routing says which topic, key, tag and properties an MQTT publish gets, and under which MQTT topics a message
// of another protocol appears. Start at Compile: it turns mappings into a Table, which is pure, immutable and safe for
// any goroutine; it does no I/O and starts nothing.
//
// Three words to know:
//
//   - a pattern is an MQTT topic with captures: {name} is one level, {rest...} the tail of one level or more;
//   - a template is text with names in braces: captures, {key}, {mqtt.topic}, {mqtt.client_id}, {mqtt.username},
//     {prop.NAME}, {json:/a/b}; filters follow a bar: |default(x), |lower;
//   - up is from MQTT to a topic, down is back to MQTT. A mapping is read both ways where that is unambiguous.
//
// Non-obvious:
//
//   - The more specific pattern wins, level by level: a literal before a capture, a capture before a tail.
//   - A message read down by an up mapping must come out of Up at the same mapping again, otherwise it has no address.
//   - MQTT topics that begin with "$" belong to servers: only a mapping that spells such a first level takes them.
//
// Not supported: captures that fill only a part of a level, templates in the name of a topic, retain: latest.
package routing
