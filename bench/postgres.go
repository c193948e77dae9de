package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgresStore is a PostgreSQL of its own on a unix socket, with its defaults.
type postgresStore struct {
	server *server
	pool   *pgxpool.Pool
}

// maxPostgresConns leaves some of the default 100 connections; further callers
// wait in the pool.
const maxPostgresConns = 90

func (s *postgresStore) Setup(t target) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	bin, err := postgresBin()
	if err != nil {
		return err
	}
	data := filepath.Join(t.Dir, "data")
	// PostgreSQL refuses to run as root.
	as, err := unprivileged(t.Dir)
	if err != nil {
		return err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "bench", "--no-sync")
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", t.Dir, "-c", "listen_addresses=")
	initdb.SysProcAttr, server.SysProcAttr = as, as
	initdb.Dir, server.Dir = t.Dir, t.Dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	config, err := pgxpool.ParseConfig("host=" + t.Dir + " user=bench dbname=postgres")
	if err != nil {
		return err
	}
	config.MaxConns = int32(min(t.Callers, maxPostgresConns))
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return err
	}
	if s.server, err = startServer(server, s.pool.Ping); err != nil {
		return err
	}
	return s.load(t.Records)
}

// postgresBin finds the folder of the newest installed version.
func postgresBin() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("postgres: %w", errNotInstalled)
	}
	return filepath.Dir(slices.Max(found)), nil
}

func (s *postgresStore) load(records int) error {
	ctx := context.Background()
	_, err := s.pool.Exec(ctx, "CREATE TABLE records (key text PRIMARY KEY, claim bytea, result bytea)")
	if err != nil {
		return err
	}
	value := make([]byte, resultBytes)
	err = load(records, func(keys []string) error {
		rows := pgx.CopyFromSlice(len(keys), func(i int) ([]any, error) { return []any{keys[i], value}, nil })
		_, err := s.pool.CopyFrom(ctx, pgx.Identifier{"records"}, []string{"key", "result"}, rows)
		return err
	})
	if err != nil {
		return err
	}
	return s.checkpoint()
}

func (s *postgresStore) checkpoint() error {
	_, err := s.pool.Exec(context.Background(), "CHECKPOINT")
	return err
}

func (s *postgresStore) Do(key string, claim, result []byte) error {
	ctx := context.Background()
	tag, err := s.pool.Exec(ctx, "INSERT INTO records (key, claim) VALUES ($1, $2) ON CONFLICT DO NOTHING", key, claim)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return errTaken
	}
	_, err = s.pool.Exec(ctx, "UPDATE records SET claim = NULL, result = $2 WHERE key = $1", key, result)
	return err
}

func (s *postgresStore) Read(key string) (result []byte, err error) {
	err = s.pool.QueryRow(context.Background(), "SELECT result FROM records WHERE key = $1", key).Scan(&result)
	return result, err
}

// Close stops the server, which writes what it still holds in memory.
func (s *postgresStore) Close() error {
	if s.server == nil {
		return nil
	}
	s.pool.Close()
	s.server.stop(syscall.SIGINT) // fast shutdown
	return nil
}
