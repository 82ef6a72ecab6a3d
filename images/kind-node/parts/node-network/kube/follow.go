package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"
)

const (
	// Between two tries, where the API server does not answer.
	pause = time.Second
	// The server ends a watch after this long, and another one takes over where it ended.
	watchSeconds = 300
)

// Follower is told what there is, and then what happens to it.
type Follower[T any] interface {
	// Replace says that there is this and nothing else.
	Replace([]T)
	Put(T)
	Remove(T)
}

// List is the API server's answer to what there is.
type List[T any] struct {
	Metadata struct{ ResourceVersion string }
	Items    []T
}

// Follow tells a follower about one kind of objects until the context ends.
func Follow[T any](ctx context.Context, client *Client, path string, follower Follower[T]) {
	for ctx.Err() == nil {
		if err := follow(ctx, client, path, follower); err != nil && ctx.Err() == nil {
			log.Printf("following %s: %v", path, err)
			time.Sleep(pause)
		}
	}
}

func follow[T any](ctx context.Context, client *Client, path string, follower Follower[T]) error {
	var list List[T]
	if err := client.Get(ctx, path, &list); err != nil {
		return err
	}
	follower.Replace(list.Items)
	version := list.Metadata.ResourceVersion
	for ctx.Err() == nil {
		began := time.Now()
		last, err := watch(ctx, client, path, version, follower)
		var failed *Failed
		if errors.As(err, &failed) && failed.Code == http.StatusGone {
			return nil // too long ago: list again
		}
		if err != nil {
			log.Printf("watching %s: %v", path, err)
		}
		if last == version && time.Since(began) < pause {
			time.Sleep(pause)
		}
		version = last
	}
	return nil
}

// watch returns the version up to which everything was told, and why it ended if that is worth a word.
func watch[T any](
	ctx context.Context, client *Client, path, version string, follower Follower[T],
) (string, error) {
	query := "?watch=1&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%d"
	body, err := client.open(ctx, path+fmt.Sprintf(query, version, watchSeconds))
	if err != nil {
		return version, err
	}
	defer body.Close()
	events := json.NewDecoder(body)
	for {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := events.Decode(&event); err != nil {
			// Ended, as every watch is after a while; the next one goes on.
			return version, nil
		}
		var about struct {
			Metadata struct{ ResourceVersion string }
			Code     int
			Message  string
		}
		if err := json.Unmarshal(event.Object, &about); err != nil {
			return version, err
		}
		if event.Type == "ERROR" {
			return version, &Failed{path, about.Code, about.Message}
		}
		version = about.Metadata.ResourceVersion
		if event.Type == "BOOKMARK" {
			continue
		}
		var object T
		if err := json.Unmarshal(event.Object, &object); err != nil {
			return version, err
		}
		if event.Type == "DELETED" {
			follower.Remove(object)
		} else {
			follower.Put(object)
		}
	}
}
