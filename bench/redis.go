package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisStore is a redis-server of its own on a unix socket, with the append-only
// file synced before every answer.
type redisStore struct {
	server *server
	client *redis.Client
}

func (s *redisStore) Setup(t target) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server: %w", errNotInstalled)
	}
	socket := filepath.Join(t.Dir, "redis.sock")
	s.client = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, PoolSize: t.Callers, MaxRetries: -1})
	// appendfsync is no while loading only.
	cmd := exec.Command(binary, "--port", "0", "--unixsocket", socket, "--dir", t.Dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "no")
	s.server, err = startServer(cmd, func(ctx context.Context) error { return s.client.Ping(ctx).Err() })
	if err != nil {
		return err
	}
	if err := s.load(t.Records); err != nil {
		return err
	}
	return s.client.ConfigSet(context.Background(), "appendfsync", "always").Err()
}

// load fills the server and waits until it has compacted its file.
func (s *redisStore) load(records int) error {
	ctx := context.Background()
	value := make([]byte, resultBytes)
	err := load(records, func(keys []string) error {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, key := range keys {
				p.Set(ctx, key, value, 0)
			}
			return nil
		})
		return err
	})
	for err == nil {
		var info string
		info, err = s.client.Info(ctx, "persistence").Result()
		if strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func (s *redisStore) Do(key string, claim, result []byte) error {
	ctx := context.Background()
	claimed, err := s.client.SetNX(ctx, key, claim, 0).Result()
	if err != nil {
		return err
	}
	if !claimed {
		return errTaken
	}
	return s.client.SetXX(ctx, key, result, 0).Err()
}

func (s *redisStore) Read(key string) ([]byte, error) {
	return s.client.Get(context.Background(), key).Bytes()
}

func (s *redisStore) Close() error {
	if s.server == nil {
		return nil
	}
	err := s.client.Close()
	s.server.stop(syscall.SIGTERM)
	return err
}
