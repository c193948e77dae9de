package main

import (
	"database/sql"
	"path/filepath"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// sqliteStore is SQLite in WAL mode with synchronous=FULL. All callers share one
// connection: SQLite has one writer at a time, and queueing in the pool is faster
// than retrying a locked database.
type sqliteStore struct {
	db             *sql.DB
	insert, update *sql.Stmt
}

func (s *sqliteStore) Setup(t target) (err error) {
	s.db, err = sql.Open("sqlite3", "file:"+filepath.Join(t.Dir, "sqlite.db")+"?_journal_mode=WAL&_synchronous=OFF")
	if err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1)
	_, err = s.db.Exec("CREATE TABLE records (key TEXT PRIMARY KEY, claim BLOB, result BLOB) WITHOUT ROWID")
	if err != nil {
		return err
	}
	if err := load(t.Records, s.loadChunk); err != nil {
		return err
	}
	for _, statement := range []string{"PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA synchronous=FULL"} {
		if _, err := s.db.Exec(statement); err != nil {
			return err
		}
	}
	s.insert, err = s.db.Prepare("INSERT INTO records (key, claim) VALUES (?, ?) ON CONFLICT DO NOTHING")
	if err != nil {
		return err
	}
	s.update, err = s.db.Prepare("UPDATE records SET claim = NULL, result = ? WHERE key = ?")
	return err
}

func (s *sqliteStore) loadChunk(keys []string) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.Prepare("INSERT INTO records (key, result) VALUES (?, ?)")
	if err != nil {
		return err
	}
	value := make([]byte, resultBytes)
	for _, key := range keys {
		if _, err := insert.Exec(key, value); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqliteStore) Do(key string, claim, result []byte) error {
	done, err := s.insert.Exec(key, claim)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errTaken
	}
	_, err = s.update.Exec(result, key)
	return err
}

func (s *sqliteStore) Read(key string) (result []byte, err error) {
	err = s.db.QueryRow("SELECT result FROM records WHERE key = ?", key).Scan(&result)
	return result, err
}

func (s *sqliteStore) Close() error { return s.db.Close() }
