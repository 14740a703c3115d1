package mqtt

import "strings"

// matches tells whether a filter, split into levels, matches a topic.
// Spec: MQTT5 4.7.1 [MQTT-4.7.1-1]; MQTT5 4.7.2 [MQTT-4.7.2-1]; MQTT3 4.7.2 [MQTT-4.7.2-1]
func matches(filter []string, topic string) bool {
	if strings.HasPrefix(topic, "$") && (filter[0] == "+" || filter[0] == "#") {
		return false
	}
	more := true
	for _, want := range filter {
		if want == "#" {
			return true // also the level before it: a/# matches a
		}
		if !more {
			return false
		}
		var level string
		level, topic, more = strings.Cut(topic, "/")
		if want != "+" && want != level {
			return false
		}
	}
	return !more
}

// splitShare takes $share/group/filter apart. ok is false when the form is wrong; group is "" when it is an
// ordinary filter.
// Spec: MQTT5 4.8.2 [MQTT-4.8.2-1] [MQTT-4.8.2-2]
func splitShare(filter string) (group, rest string, ok bool) {
	after, shared := strings.CutPrefix(filter, "$share/")
	if !shared {
		return "", filter, filter != "$share"
	}
	group, rest, ok = strings.Cut(after, "/")
	return group, rest, ok && group != "" && rest != "" && !strings.ContainsAny(group, "+#")
}
