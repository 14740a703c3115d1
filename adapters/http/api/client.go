package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client speaks to a gateway's API. Any goroutine may call it.
type Client struct {
	URL  string // of the HTTP listener, such as http://127.0.0.1:8080
	HTTP *http.Client
}

// Error is an answer of the gateway that says no.
type Error struct {
	Status  int
	Kind    string // topic_not_found, invalid, …: see errors.go
	Message string
}

func (e *Error) Error() string { return e.Message }

// maxAnswer bounds what a client reads.
const maxAnswer = 64 << 20

// Do sends one request: path is made by Path, in and out may be nil. The error is an *Error when the gateway answered.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, body)
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := c.HTTP.Do(q)
	if err != nil {
		return fmt.Errorf("is the gateway running? %w", err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return refusal(res, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

func refusal(res *http.Response, b []byte) error {
	var p problem
	if err := json.Unmarshal(b, &p); err != nil || p.Error == "" {
		return errors.New("not the API of a gateway: " + res.Status)
	}
	return &Error{res.StatusCode, p.Kind, p.Error}
}

// Path makes the path of these segments below Prefix, each escaped.
func Path(segments ...string) string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(Prefix, "/"))
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
