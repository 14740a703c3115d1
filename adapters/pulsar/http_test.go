package pulsar

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	stock "github.com/apache/pulsar-client-go/pulsar"

	"isthmus/core/engine"
)

// A client whose service URL is http:// finds its way.
func TestHTTPLookup(t *testing.T) {
	b := newBed(t, setup{})
	b.Topic(t, "web", 2)
	web := httptest.NewServer(b.srv.HTTP())
	t.Cleanup(web.Close)
	c, err := stock.NewClient(stock.ClientOptions{URL: web.URL, OperationTimeout: 5 * time.Second, Logger: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	k := consumerOf(t, c, stock.ConsumerOptions{Topic: "web"})
	p := producerOf(t, c, stock.ProducerOptions{Topic: "web", Schema: stock.NewStringSchema(nil)})
	sendMessage(t, p, &stock.ProducerMessage{Value: "over http"})
	if m := receive(t, k); string(m.Payload()) != "over http" {
		t.Errorf("%q", m.Payload())
	}
}

func TestHTTPAnswers(t *testing.T) {
	b := newBed(t, setup{engine: func(c *engine.Config) { c.Defaults.AutoCreate = false }})
	b.declare(t, "web", 2)
	h := b.srv.HTTP()
	for path, want := range map[string]int{
		"/lookup/v2/topic/persistent/public/default/web":                                  200,
		"/lookup/v2/topic/persistent/public/default/web-partition-1":                      200,
		"/lookup/v2/topic/persistent/public/default/web-partition-2":                      404,
		"/lookup/v2/topic/foo/public/default/web":                                         412,
		"/admin/v2/persistent/public/default/web/partitions":                              200,
		"/admin/v2/persistent/public/default/none/partitions":                             200,
		"/admin/v2/persistent/public/default/none/partitions?checkAllowAutoCreation=true": 404,
		"/admin/v2/namespaces/public/default/topics?mode=ALL":                             200,
		"/admin/v2/namespaces/public/none/topics":                                         404,
		"/admin/v2/schemas/public/default/web/schema":                                     404,
		"/admin/v2/schemas/public/default/web/schema/7":                                   404,
		"/admin/v2/persistent/public/default/web/stats":                                   404,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/admin/v2/namespaces/public/default/topics", nil))
	var names []string
	if err := json.Unmarshal(w.Body.Bytes(), &names); err != nil || len(names) != 2 || names[1] != "persistent://public/default/web-partition-1" {
		t.Errorf("%v %v", names, err)
	}
}

func TestHTTPAsksWhoAndWhat(t *testing.T) {
	b := newBed(t, setup{auth: nobody{}})
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/lookup/v2/topic/persistent/public/default/web", nil)
	r.Header.Set("Authorization", "Bearer jwt")
	b.srv.HTTP().ServeHTTP(w, r)
	if w.Code != 401 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if c := credentials(r); c.Method != "token" || string(c.Data) != "jwt" {
		t.Errorf("%+v", c)
	}
}
