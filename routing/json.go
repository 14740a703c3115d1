package routing

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// jsonText is the text of the string, number or boolean at a JSON pointer; "" when there is none. The body is a
// stranger's: it is scanned only as far as the pointer leads, and broken JSON has no values.
// Spec: RFC 6901 3, 4
func jsonText(body []byte, pointer string) string {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	for pointer != "" {
		var name string
		name, pointer = cutPointer(pointer)
		if !descend(dec, name) {
			return ""
		}
	}
	tok, err := dec.Token()
	if err != nil {
		return ""
	}
	switch v := tok.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return "" // null, an object or an array
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

func cutPointer(p string) (name, rest string) {
	name = p[1:]
	if i := strings.IndexByte(name, '/'); i >= 0 {
		name, rest = name[:i], name[i:]
	}
	return unescapePointer.Replace(name), rest
}

// descend moves dec to the value of one member of the object or array that comes next.
func descend(dec *json.Decoder, name string) bool {
	open, err := dec.Token()
	if err != nil {
		return false
	}
	index := -1
	if open == json.Delim('[') {
		if index, err = strconv.Atoi(name); err != nil || index < 0 || strconv.Itoa(index) != name {
			return false
		}
	} else if open != json.Delim('{') {
		return false
	}
	for i := 0; dec.More(); i++ {
		if index >= 0 {
			if i == index {
				return true
			}
		} else if key, err := dec.Token(); err != nil {
			return false
		} else if key == name {
			return true
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return false
		}
	}
	return false
}
