package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"isthmus/e2e/clients"
)

// SQL92 in the Java client: what the expression does not want is passed over for the group, whoever produced it; a bad
// expression is refused with the real broker's code before the consumer starts.
func TestJavaSQL92(t *testing.T) {
	t.Parallel()
	program := java(t, "RocketMQMain")
	b := newBed(t, matrix, 2*time.Minute)
	b.run(program, "produce", b.NameServer, "by-rocketmq", fmt.Sprint(foreignCount), fmt.Sprint(foreignKeys))
	device := b.mqtt("device")
	for _, n := range []string{"7", "8", "9000"} {
		b.must(device.Send(b.ctx, clients.Message{Topic: "by-mqtt/1", Body: []byte("mqtt " + n), Props: map[string]string{"n": n}}))
	}
	consume := func(topic, sql string, count int) []string {
		return b.run(program, "consume", b.NameServer, topic, "java-sql", "orderly", fmt.Sprint(count), "20", sql)
	}
	got := map[string]int{}
	for _, m := range messages(t, consume("by-rocketmq", "(n BETWEEN 10 AND 29 OR n = 299) AND unit IS NOT NULL AND TAGS = 'java'", 21)) {
		got[m.Props["n"]]++
	}
	for n := range foreignCount {
		want := 0
		if n >= 10 && n <= 29 || n == 299 {
			want = 1
		}
		if got[fmt.Sprint(n)] != want {
			t.Errorf("message %d came %d times, want %d", n, got[fmt.Sprint(n)], want)
		}
	}
	var bodies []string
	for _, m := range messages(t, consume("by-mqtt", "n > 7 AND n < 100", 1)) {
		bodies = append(bodies, string(m.Body))
	}
	if !slices.Equal(bodies, []string{"mqtt 8"}) {
		t.Errorf("of what MQTT published came %q", bodies)
	}
	const parseFailed = 23 // SUBSCRIPTION_PARSE_FAILED
	if lines := consume("by-rocketmq", "n >", 1); !slices.Contains(lines, fmt.Sprint("refused ", parseFailed)) {
		t.Errorf("a bad expression: %q", lines)
	}
}
