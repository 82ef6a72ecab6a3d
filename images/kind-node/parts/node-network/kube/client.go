// Package kube reads from the API server: lists, and what happens after them.
// It knows nothing of what the objects mean.
package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	// For everything but watches.
	patience = 10 * time.Second
)

// Client is a connection to the API server.
type Client struct {
	base  string
	http  *http.Client
	token func() (string, error)
}

// InPod is the client of a pod's own service account.
func InPod(endpoint string) (*Client, error) {
	ca, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	dialer := net.Dialer{
		Timeout: patience,
		// A watch is silent for long: a server that has gone shall be noticed.
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3,
		},
	}
	transport := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: pool}}
	return New("https://"+endpoint, &http.Client{Transport: transport}, func() (string, error) {
		// Read each time: it is replaced every hour.
		token, err := os.ReadFile(account + "token")
		return string(token), err
	}), nil
}

// New is a client of any server.
func New(base string, with *http.Client, token func() (string, error)) *Client {
	return &Client{base, with, token}
}

// Get reads an object or a list.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := c.open(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(into)
}

// Failed is an answer of the API server that is none.
type Failed struct {
	Path string
	Code int
	Text string
}

func (f *Failed) Error() string {
	return fmt.Sprintf("GET %s: %d: %s", f.Path, f.Code, f.Text)
}

func (c *Client) open(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return nil, &Failed{path, response.StatusCode, string(text)}
	}
	return response.Body, nil
}
