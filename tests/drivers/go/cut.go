package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	cutWorkers = 4
	cutBefore  = 100
	cutAfter   = 500
	// How long other hosts are waited for, and the pause between two steps meanwhile.
	cutPatience = time.Minute
	cutPause    = 10 * time.Millisecond
)

// cut is gocql while a move is cut over: it does what ../python/cut.py does.
func cut(address, keyspace string) bool {
	session, err := connect(address, func(cluster *gocql.ClusterConfig) {
		cluster.Keyspace = keyspace
		cluster.Consistency = gocql.Quorum
		cluster.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
		cluster.Timeout = 30 * time.Second
	})
	if err != nil {
		fmt.Println("FAILED", err)
		return false
	}
	defer session.Close()
	var (
		lock     sync.Mutex
		failures []string
		hosts    = map[string]int{}
		counts   [cutWorkers]int
		ends     atomic.Int64
		begun    sync.WaitGroup
		ended    sync.WaitGroup
	)
	fail := func(text string) {
		lock.Lock()
		failures = append(failures, text)
		lock.Unlock()
	}
	run := func(into any, statement string, values ...any) error {
		iter := session.Query(statement, values...).Iter()
		host := iter.Host()
		if into != nil {
			iter.Scan(into)
		}
		if err := iter.Close(); err != nil {
			return err
		}
		lock.Lock()
		hosts[host.ConnectAddress().String()]++
		lock.Unlock()
		return nil
	}
	steps := func(number, step int) error {
		key, found := step*cutWorkers+number, 0
		if err := run(nil, "INSERT INTO go_rows (k, v) VALUES (?, ?)", key, 0); err != nil {
			return err
		}
		if err := run(nil, "UPDATE go_rows SET v = ? WHERE k = ?", key+1, key); err != nil {
			return err
		}
		if err := run(nil, "UPDATE go_lists SET l = l + ? WHERE k = ?", []int{step}, number); err != nil {
			return err
		}
		if err := run(&found, "SELECT v FROM go_rows WHERE k = ?", key); err != nil {
			return err
		}
		if found != key+1 {
			return fmt.Errorf("row %d had %d", key, found)
		}
		return nil
	}
	begun.Add(cutWorkers)
	for number := range cutWorkers {
		ended.Add(1)
		go func() {
			defer ended.Done()
			for after, step := cutAfter, 0; after > 0; step++ {
				if err := steps(number, step); err != nil {
					fail(fmt.Sprintf("worker %d, step %d: %v", number, step, err))
				}
				counts[number] = step + 1
				if step+1 == cutBefore {
					begun.Done()
				}
				if until := ends.Load(); until > 0 {
					lock.Lock()
					found := len(hosts) > 1
					lock.Unlock()
					if found || time.Now().UnixMilli() > until {
						after--
					} else {
						time.Sleep(cutPause)
					}
				}
			}
		}()
	}
	begun.Wait()
	fmt.Println("running")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	ends.Store(time.Now().Add(cutPatience).UnixMilli())
	ended.Wait()
	rows, written := map[int]int{}, 0
	iter := session.Query("SELECT k, v FROM go_rows").PageSize(100).Iter()
	for key, value := 0, 0; iter.Scan(&key, &value); {
		rows[key] = value
	}
	if err := iter.Close(); err != nil {
		fail(err.Error())
	}
	for number, count := range counts {
		written += count
		for step := range count {
			if key := step*cutWorkers + number; rows[key] != key+1 {
				fail(fmt.Sprintf("row %d has %d", key, rows[key]))
			}
		}
		var appended []int
		if err := session.Query("SELECT l FROM go_lists WHERE k = ?", number).Scan(&appended); err != nil {
			fail(err.Error())
		}
		slices.Sort(appended)
		if len(appended) != count || appended[0] != 0 || appended[count-1] != count-1 || len(slices.Compact(appended)) != count {
			fail(fmt.Sprintf("list %d: %d elements for %d steps", number, len(appended), count))
		}
	}
	if len(rows) != written {
		fail(fmt.Sprintf("%d rows of %d", len(rows), written))
	}
	for _, failure := range failures[:min(len(failures), 20)] {
		fmt.Println("FAILED", failure)
	}
	var where []string
	for host, count := range hosts {
		where = append(where, fmt.Sprintf("%s %d", host, count))
	}
	sort.Strings(where)
	verdict := "ok"
	if len(failures) > 0 {
		verdict = "FAILED"
	}
	fmt.Println(verdict, written, "steps;", strings.Join(where, ", "))
	return len(failures) == 0
}
