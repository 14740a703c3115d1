package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"isthmus/core"
)

// Metrics are the counters of the engine and those that adapters share. Labels come from closed sets: protocol is mqtt,
// pulsar, rocketmq or http; topic and group are under a limit, the rest is "other".
type Metrics struct {
	Connections *prometheus.GaugeVec   // protocol
	Publishes   *prometheus.CounterVec // protocol; messages accepted
	Deliveries  *prometheus.CounterVec // protocol; messages handed to clients
	Duplicates  *prometheus.CounterVec // protocol; messages that a producer had stored before
	Dropped     *prometheus.CounterVec // protocol, reason; messages that a client did not get though it asked for them

	GroupDropped *prometheus.CounterVec // reason; messages that groups lost to a TTL or a bound of their backlog

	GivenUp prometheus.Counter // half messages that nobody decided about

	rebalances     *prometheus.CounterVec // reason: members, acknowledged, gone, unlocked, timeout, silent
	refusedCommits prometheus.Counter

	filtered      prometheus.Counter
	deadLetters   prometheus.Counter
	expiredGroups prometheus.Counter

	commitSeconds prometheus.Histogram
	commitBytes   prometheus.Counter
	commitCount   prometheus.Counter
	coldReads     *prometheus.CounterVec // result
	coldHits      prometheus.Counter
	coldMisses    prometheus.Counter
	scannedBytes  prometheus.Counter
}

func newMetrics(e *Engine, reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		Connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "isthmus_connections", Help: "Open client connections."}, []string{"protocol"}),
		Publishes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "isthmus_publishes_total", Help: "Messages accepted from producers."}, []string{"protocol"}),
		Duplicates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "isthmus_duplicates_total", Help: "Messages that a producer sent again and that were not stored again."}, []string{"protocol"}),
		Deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "isthmus_deliveries_total", Help: "Messages handed to consumers."}, []string{"protocol"}),
		Dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "isthmus_dropped_total", Help: "Messages that a consumer asked for and did not get."}, []string{"protocol", "reason"}),
		GroupDropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "isthmus_group_dropped_total", Help: "Messages that groups lost unacknowledged, by a TTL or a bound of their backlog."}, []string{"reason"}),
		GivenUp: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "isthmus_half_given_up_total", Help: "Half messages that were dropped because their producers never decided."}),
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "isthmus_commit_seconds", Help: "Time to make one block durable.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 16)}),
		commitBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "isthmus_commit_bytes_total", Help: "Bytes of blocks made durable."}),
		commitCount: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "isthmus_commit_messages_total", Help: "Messages made durable."}),
	}
	m.rebalances = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "isthmus_rebalances_total", Help: "Partitions that changed hands between queue-based members and the other consumers of a group."}, []string{"reason"})
	m.refusedCommits = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "isthmus_refused_commits_total", Help: "Commits by queue-based members of what they were never given, in groups shared with other consumers."})
	m.filtered = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "isthmus_group_filtered_total", Help: "Messages that no member of a group wanted: acknowledged for it."})
	m.deadLetters = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "isthmus_dead_letters_total", Help: "Messages that a group got too often: moved to its dead-letter topic."})
	m.expiredGroups = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "isthmus_groups_expired_total", Help: "Groups that were deleted because nobody had used them for group_expiry."})
	m.coldReads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "isthmus_cold_reads_total", Help: "Reads of what is older than the tail cache: hit when another reader's scan had brought it."}, []string{"result"})
	m.coldHits, m.coldMisses = m.coldReads.WithLabelValues("hit"), m.coldReads.WithLabelValues("miss")
	m.scannedBytes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "isthmus_cold_scanned_bytes_total", Help: "Bytes that catch-up readers have brought from the journals."})
	if reg != nil {
		reg.MustRegister(m.Connections, m.Publishes, m.Duplicates, m.Deliveries, m.Dropped, m.GroupDropped, m.rebalances, m.refusedCommits, m.filtered, m.deadLetters, m.expiredGroups, m.commitSeconds, m.commitBytes, m.commitCount,
			m.coldReads, m.scannedBytes,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "isthmus_cold_cache_bytes", Help: "Memory that holds what catch-up readers have read lately."},
				func() float64 { return float64(e.cold.bytes()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "isthmus_storage_free_bytes", Help: "Free disk space of the data folder, 0 where it is not known."},
				func() float64 { return float64(e.free.Load()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "isthmus_storage_full", Help: "1 while producers are refused because the disk is almost full."},
				func() float64 {
					if e.full.Load() {
						return 1
					}
					return 0
				}),
			&lagCollector{eng: e}, &parkedCollector{eng: e}, m.GivenUp)
	}
	return m
}

func (m *Metrics) committed(d time.Duration, messages int64, size int) {
	m.commitSeconds.Observe(d.Seconds())
	m.commitBytes.Add(float64(size))
	m.commitCount.Add(float64(messages))
}

func (m *Metrics) coldRead(hit bool) {
	if hit {
		m.coldHits.Inc()
	} else {
		m.coldMisses.Inc()
	}
}

// maxSeries bounds the (topic, group) pairs that are named; what is beyond is summed up as "other".
const maxSeries = 500

// lagCollector reports, when asked, how far groups are behind.
type lagCollector struct{ eng *Engine }

var (
	topicMessages = prometheus.NewDesc("isthmus_topic_messages", "Messages retained.", []string{"topic"}, nil)
	groupBacklog  = prometheus.NewDesc("isthmus_group_backlog_messages",
		"Messages of the topic that the group has not acknowledged.", []string{"topic", "group"}, nil)
	groupLag = prometheus.NewDesc("isthmus_group_lag_messages",
		"Largest distance of one partition's acknowledged mark from its end.", []string{"topic", "group"}, nil)
)

// Describe implements prometheus.Collector.
func (c *lagCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- topicMessages
	ch <- groupBacklog
	ch <- groupLag
}

// Collect implements prometheus.Collector.
func (c *lagCollector) Collect(ch chan<- prometheus.Metric) {
	type sums struct{ retained, backlog, lag float64 }
	var other sums
	topics, series := 0, 0
	for _, t := range c.eng.Topics() {
		var retained float64
		for _, p := range t.parts() {
			first, end := p.Bounds()
			retained += float64(end - first)
		}
		if topics++; topics <= maxSeries {
			ch <- prometheus.MustNewConstMetric(topicMessages, prometheus.GaugeValue, retained, t.name.String())
		} else {
			other.retained += retained
		}
		for _, g := range t.Groups() {
			backlog, lag := g.Backlog()
			if series++; series <= maxSeries {
				ch <- prometheus.MustNewConstMetric(groupBacklog, prometheus.GaugeValue, float64(backlog), t.name.String(), g.name)
				ch <- prometheus.MustNewConstMetric(groupLag, prometheus.GaugeValue, float64(lag), t.name.String(), g.name)
			} else {
				other.backlog += float64(backlog)
				other.lag = max(other.lag, float64(lag))
			}
		}
	}
	if topics > maxSeries {
		ch <- prometheus.MustNewConstMetric(topicMessages, prometheus.GaugeValue, other.retained, "other")
	}
	if series > maxSeries {
		ch <- prometheus.MustNewConstMetric(groupBacklog, prometheus.GaugeValue, other.backlog, "other", "other")
		ch <- prometheus.MustNewConstMetric(groupLag, prometheus.GaugeValue, other.lag, "other", "other")
	}
}

// Backlog returns how many messages the group has not acknowledged, and the largest distance of one partition's mark from
// its end. What was acknowledged beyond a mark within the last moments may still be counted.
func (g *Group) Backlog() (messages, lag int64) {
	for _, gp := range g.parts() {
		end := gp.p.committed.Load()
		gp.mu.Lock()
		messages += gp.mu.cursor.Unacked(core.Range{From: gp.mark.Load(), To: end})
		gp.mu.Unlock()
		behind := max(0, end-gp.mark.Load())
		lag = max(lag, behind)
	}
	return messages, lag
}
