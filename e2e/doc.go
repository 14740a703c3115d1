// Package e2e runs real clients against the real binary: the public Go, Java and Python clients of MQTT, Pulsar and
// RocketMQ, and mosquitto's tools, on `isthmus run` over a fresh data folder.
//
// Map: matrix_test (who can talk to whom), fleet_test and kill_test (the main job, and the main job under SIGKILL),
// s1/s2/s3_test (one test per statement of the three worlds), i10_test (what survives a crossing, one test per cell of
// docs/crossings.md), badinput_test (strangers at each port), foreign_test (Java, Python, mosquitto).
// member_test starts members of a group in processes of their own (this test binary again, or Java), so that they can be
// killed; crew_test judges what they did by their own clocks.
// gateway starts and measures the process, clients wraps the client libraries, cmd/fleetbench measures,
// and so does cmd/twelve (S1.48).
//
// Non-obvious:
//   - TestMain builds the binary once into e2e/.work; ISTHMUS_BIN uses one that is there, ISTHMUS_RACE=1 builds with -race.
//   - A missing foreign tool skips its test on a desk and fails it when CI=true.
//   - Where a failure is injected duplicates are allowed and gaps are not; elsewhere neither is.
package e2e
