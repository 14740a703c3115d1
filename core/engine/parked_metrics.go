package engine

import "github.com/prometheus/client_golang/prometheus"

// parkedCollector reports, when asked, what is parked on the node.
type parkedCollector struct{ eng *Engine }

var parkedMessages = prometheus.NewDesc("isthmus_parked_messages", "Messages that are stored but not in their topic yet.", []string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (c *parkedCollector) Describe(ch chan<- *prometheus.Desc) { ch <- parkedMessages }

// Collect implements prometheus.Collector.
func (c *parkedCollector) Collect(ch chan<- prometheus.Metric) {
	delayed, half := 0, 0
	for _, l := range c.eng.allLogs() {
		if k := l.parking.Load(); k != nil {
			k.mu.Lock()
			all, halves := k.mu.index.Len()
			k.mu.Unlock()
			delayed, half = delayed+all-halves, half+halves
		}
	}
	ch <- prometheus.MustNewConstMetric(parkedMessages, prometheus.GaugeValue, float64(delayed), "delayed")
	ch <- prometheus.MustNewConstMetric(parkedMessages, prometheus.GaugeValue, float64(half), "half")
}
