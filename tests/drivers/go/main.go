// gocql against a CQL server: see ../README.md for arguments and cases.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/apache/cassandra-gocql-driver/v2/lz4"
	"github.com/apache/cassandra-gocql-driver/v2/snappy"
	"gopkg.in/inf.v0"
)

const keyspace = "go_driver"

type test struct {
	name string
	run  func(address string, session *gocql.Session) error
}

var cases = []test{
	{"connect", connectCase}, {"schema", schemaCase}, {"types", typesCase}, {"simple", simpleCase},
	{"prepared", preparedCase}, {"batch", batchCase}, {"paging", pagingCase}, {"slices", slicesCase},
	{"errors", errorsCase}, {"compression", compressionCase}, {"tracing", tracingCase}, {"events", eventsCase},
	{"metadata_id", metadataIDCase}, {"reprepare", reprepareCase},
}

func connect(address string, change func(*gocql.ClusterConfig)) (*gocql.Session, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	cluster := gocql.NewCluster(host)
	cluster.Port, err = strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	cluster.Consistency = gocql.One
	cluster.Timeout = 20 * time.Second
	cluster.ConnectTimeout = 20 * time.Second
	access(cluster)
	if change != nil {
		change(cluster)
	}
	return cluster.CreateSession()
}

// access sets TLS and a login, where the environment asks for them: see ../README.md.
func access(cluster *gocql.ClusterConfig) {
	if cafile := os.Getenv("DRIVER_CAFILE"); cafile != "" {
		cluster.SslOpts = &gocql.SslOptions{
			CaPath:                 cafile,
			CertPath:               os.Getenv("DRIVER_CERT"),
			KeyPath:                os.Getenv("DRIVER_KEY"),
			EnableHostVerification: true,
		}
	}
	if user := os.Getenv("DRIVER_USER"); user != "" {
		cluster.Authenticator = gocql.PasswordAuthenticator{Username: user, Password: os.Getenv("DRIVER_PASSWORD")}
	}
}

func equal(what string, found, expected any) error {
	if !reflect.DeepEqual(found, expected) {
		return fmt.Errorf("%s: found %v, expected %v", what, found, expected)
	}
	return nil
}

// all runs statements in order and stops at the first error.
func all(session *gocql.Session, statements ...string) error {
	for _, statement := range statements {
		if err := session.Query(statement).Exec(); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func table(session *gocql.Session, name, columns string) (string, error) {
	full := keyspace + "." + name
	return full, all(session, "DROP TABLE IF EXISTS "+full, "CREATE TABLE "+full+" ("+columns+")")
}

func ints(iter *gocql.Iter) ([]int, error) {
	found, value := []int{}, 0
	for iter.Scan(&value) {
		found = append(found, value)
	}
	return found, iter.Close()
}

func connectCase(address string, session *gocql.Session) error {
	hosts := session.GetHosts()
	if len(hosts) != 1 || hosts[0].DataCenter() != "datacenter1" || hosts[0].Rack() != "rack1" {
		return fmt.Errorf("hosts: %v", hosts)
	}
	if len(hosts[0].Tokens()) == 0 || hosts[0].Version().Major != 5 {
		return fmt.Errorf("host: %v", hosts[0])
	}
	for _, version := range []int{3, 4, 5} {
		other, err := connect(address, func(cluster *gocql.ClusterConfig) { cluster.ProtoVersion = version })
		if err != nil {
			return fmt.Errorf("protocol %d: %w", version, err)
		}
		var key string
		if err := other.Query("SELECT key FROM system.local").Scan(&key); err != nil {
			return fmt.Errorf("protocol %d: %w", version, err)
		}
		other.Close()
	}
	return nil
}

func schemaCase(_ string, session *gocql.Session) error {
	create := "CREATE TABLE " + keyspace + ".made (a int, b text, c timeuuid, s text static, v blob, " +
		"PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC)"
	if err := all(session, "DROP TABLE IF EXISTS "+keyspace+".made", create); err != nil {
		return err
	}
	// gocql refreshes its metadata on schema events, a second after the last of them.
	var made *gocql.TableMetadata
	for limit := time.Now().Add(20 * time.Second); made == nil; time.Sleep(20 * time.Millisecond) {
		if metadata, err := session.KeyspaceMetadata(keyspace); err == nil {
			made = metadata.Tables["made"]
		}
		if time.Now().After(limit) {
			return errors.New("the table is not in the metadata after 20 s")
		}
	}
	if len(made.PartitionKey) != 2 || made.PartitionKey[1].Name != "b" || made.ClusteringColumns[0].Order != gocql.DESC {
		return fmt.Errorf("keys: %v %v", made.PartitionKey, made.ClusteringColumns)
	}
	if made.Columns["s"].Kind != gocql.ColumnStatic || made.Columns["v"].Type.Type() != gocql.TypeBlob {
		return fmt.Errorf("columns: %v", made.Columns)
	}
	var exists *gocql.RequestErrAlreadyExists
	if err := session.Query(create).Exec(); !errors.As(err, &exists) || exists.Table != "made" {
		return fmt.Errorf("a second CREATE: %v", err)
	}
	return all(session, strings.Replace(create, "TABLE", "TABLE IF NOT EXISTS", 1),
		"ALTER TABLE "+keyspace+".made ADD w int", "DROP TABLE "+keyspace+".made")
}

func typesCase(_ string, session *gocql.Session) error {
	moment := time.Date(2026, 11, 21, 9, 30, 15, 123e6, time.UTC)
	big200 := new(big.Int).Lsh(big.NewInt(1), 200)
	values := []struct {
		kind  string
		value any
	}{
		{"ascii", "abc"}, {"bigint", int64(math.MinInt64)}, {"blob", []byte{0, 255}}, {"boolean", true},
		{"date", moment.Truncate(24 * time.Hour)}, {"decimal", inf.NewDec(-1234567890123, 7)}, {"double", 5e-324},
		{"duration", gocql.Duration{Months: -1, Days: -2, Nanoseconds: -3}}, {"float", float32(1.5)},
		{"inet", net.ParseIP("2001:db8::1")}, {"int", math.MinInt32}, {"smallint", int16(math.MinInt16)},
		{"text", "γαῖα"}, {"time", 24*time.Hour - 1}, {"timestamp", moment}, {"timeuuid", gocql.UUIDFromTime(moment)},
		{"tinyint", int8(math.MinInt8)}, {"uuid", gocql.MustRandomUUID()}, {"varchar", ""}, {"varint", big200},
	}
	for _, item := range values {
		full, err := table(session, "types_"+item.kind, "k int PRIMARY KEY, v "+item.kind)
		if err != nil {
			return err
		}
		insert := "INSERT INTO " + full + " (k, v) VALUES (?, ?)"
		if err := session.Query(insert, 1, item.value).Exec(); err != nil {
			return fmt.Errorf("%s: %w", item.kind, err)
		}
		if err := session.Query(insert, 2, nil).Exec(); err != nil {
			return fmt.Errorf("%s, null: %w", item.kind, err)
		}
		found := reflect.New(reflect.TypeOf(item.value))
		if err := session.Query("SELECT v FROM "+full+" WHERE k = ?", 1).Scan(found.Interface()); err != nil {
			return fmt.Errorf("%s: %w", item.kind, err)
		}
		got, want := fmt.Sprint(found.Elem().Interface()), fmt.Sprint(item.value)
		if err := equal(item.kind, got, want); err != nil {
			return err
		}
		absent := reflect.New(reflect.PointerTo(reflect.TypeOf(item.value)))
		if item.kind == "int" {
			if err := session.Query("SELECT v FROM " + full + " WHERE k = 2").Scan(absent.Interface()); err != nil || !absent.Elem().IsNil() {
				return fmt.Errorf("null: %v %w", absent, err)
			}
		}
		if err := all(session, "DROP TABLE "+full); err != nil {
			return err
		}
	}
	return nil
}

func simpleCase(_ string, session *gocql.Session) error {
	full, err := table(session, "simple", "k int, c int, v text, PRIMARY KEY (k, c)")
	if err != nil {
		return err
	}
	if err := all(session, "INSERT INTO "+full+" (k, c, v) VALUES (1, 1, 'one')", "UPDATE "+full+" SET v = 'two' WHERE k = 1 AND c = 2"); err != nil {
		return err
	}
	iter := session.Query("SELECT v FROM " + full + " WHERE k = 1").Iter()
	var first, second string
	if !iter.Scan(&first) || !iter.Scan(&second) {
		return fmt.Errorf("two rows expected: %w", iter.Close())
	}
	if err := iter.Close(); err != nil {
		return err
	}
	return equal("rows", []string{first, second}, []string{"one", "two"})
}

func preparedCase(_ string, session *gocql.Session) error {
	full, err := table(session, "prepared", "k int, c int, a int, b text, PRIMARY KEY (k, c)")
	if err != nil {
		return err
	}
	insert := "INSERT INTO " + full + " (k, c, a, b) VALUES (?, ?, ?, ?)"
	if err := session.Query(insert, 1, 1, 10, "ten").Exec(); err != nil {
		return err
	}
	if err := session.Query(insert, 1, 1, gocql.UnsetValue, nil).WithTimestamp(time.Now().UnixMicro() + 1000).Exec(); err != nil {
		return err
	}
	var a, count int
	var b *string
	if err := session.Query("SELECT a, b FROM "+full+" WHERE k = ? AND c = ?", 1, 1).Scan(&a, &b); err != nil {
		return err
	}
	if a != 10 || b != nil {
		return fmt.Errorf("unset keeps, null deletes: found %v %v", a, b)
	}
	failures := make(chan error, 500)
	for c := range 500 {
		go func() { failures <- session.Query(insert, 2, c, c, "many").Exec() }()
	}
	for range 500 {
		if err := <-failures; err != nil {
			return err
		}
	}
	if err := session.Query("SELECT count(*) FROM "+full+" WHERE k = ?", 2).Scan(&count); err != nil {
		return err
	}
	return equal("500 at once", count, 500)
}

func batchCase(_ string, session *gocql.Session) error {
	full, err := table(session, "batches", "k int, c int, v text, PRIMARY KEY (k, c)")
	if err != nil {
		return err
	}
	for k, kind := range []gocql.BatchType{gocql.LoggedBatch, gocql.UnloggedBatch} {
		batch := session.Batch(kind).WithTimestamp(777)
		for c := range 20 {
			batch.Query("INSERT INTO "+full+" (k, c, v) VALUES (?, ?, ?)", k, c, "v")
		}
		batch.Query(fmt.Sprintf("INSERT INTO %s (k, c, v) VALUES (%d, 20, 'text')", full, k))
		if err := batch.Exec(); err != nil {
			return err
		}
		var count int
		var at int64
		if err := session.Query("SELECT count(*), max(writetime(v)) FROM "+full+" WHERE k = ?", k).Scan(&count, &at); err != nil {
			return err
		}
		if count != 21 || at != 777 {
			return fmt.Errorf("a batch: %d rows at %d", count, at)
		}
	}
	return nil
}

func pagingCase(_ string, session *gocql.Session) error {
	full, err := table(session, "paging", "k int, c int, PRIMARY KEY (k, c)")
	if err != nil {
		return err
	}
	for k := range 10 {
		batch := session.Batch(gocql.UnloggedBatch)
		for c := range 100 {
			batch.Query("INSERT INTO "+full+" (k, c) VALUES (?, ?)", k, k*100+c)
		}
		if err := batch.Exec(); err != nil {
			return err
		}
	}
	found, err := ints(session.Query("SELECT c FROM " + full).PageSize(77).Iter())
	if err != nil {
		return err
	}
	seen := map[int]bool{}
	for _, c := range found {
		seen[c] = true
	}
	if len(found) != 1000 || len(seen) != 1000 {
		return fmt.Errorf("%d rows, %d different", len(found), len(seen))
	}
	iter := session.Query("SELECT c FROM " + full + " WHERE k = 3").PageSize(30).PageState(nil).Iter()
	state := bytes.Clone(iter.PageState())
	if err := equal("a page", iter.NumRows(), 30); err != nil {
		return err
	}
	rest, err := ints(session.Query("SELECT c FROM " + full + " WHERE k = 3").PageSize(30).PageState(state).Iter())
	if err != nil {
		return err
	}
	return equal("the next page", rest[0], 330)
}

func slicesCase(_ string, session *gocql.Session) error {
	for _, order := range []string{"ASC", "DESC"} {
		full, err := table(session, "slices", "k text, c text, v int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c "+order)
		if err != nil {
			return err
		}
		for i := range 300 {
			if err := session.Query("INSERT INTO "+full+" (k, c, v) VALUES ('row', ?, ?)", fmt.Sprintf("%04d", i), i).Exec(); err != nil {
				return err
			}
		}
		for _, slice := range []struct {
			where    string
			values   []any
			expected []int
		}{
			{"AND c = ?", []any{"0042"}, []int{42}},
			{"AND c IN ? ORDER BY c ASC", []any{[]string{"0200", "0007", "none"}}, []int{7, 200}},
			{"AND c >= ? AND c < ? ORDER BY c ASC", []any{"0100", "0103"}, []int{100, 101, 102}},
			{"AND c < ? ORDER BY c DESC LIMIT 3", []any{"0100"}, []int{99, 98, 97}},
		} {
			found, err := ints(session.Query("SELECT v FROM "+full+" WHERE k = 'row' "+slice.where, slice.values...).Iter())
			if err != nil {
				return err
			}
			if err := equal(order+" "+slice.where, found, slice.expected); err != nil {
				return err
			}
		}
	}
	return nil
}

func errorsCase(_ string, session *gocql.Session) error {
	for _, refused := range []struct {
		code               int
		message, statement string
	}{
		{gocql.ErrCodeSyntax, "line 1:0 no viable alternative at input 'SELEC'", "SELEC * FROM x"},
		{gocql.ErrCodeInvalid, "table absent does not exist", "SELECT * FROM " + keyspace + ".absent"},
		{gocql.ErrCodeConfig, "Unable to find replication strategy class", "CREATE KEYSPACE bad WITH replication = {'class': 'NoStrategy'}"},
	} {
		err := session.Query(refused.statement).Exec()
		var failure gocql.RequestError
		if !errors.As(err, &failure) || failure.Code() != refused.code || !strings.Contains(failure.Message(), refused.message) {
			return fmt.Errorf("%s: %v", refused.statement, err)
		}
	}
	return nil
}

func compressionCase(address string, session *gocql.Session) error {
	full, err := table(session, "compression", "k int PRIMARY KEY, v text")
	if err != nil {
		return err
	}
	text := strings.Repeat("compressible ", 25000)
	for k, kind := range []struct {
		version    int
		compressor gocql.Compressor
	}{{5, &lz4.LZ4Compressor{}}, {4, &lz4.LZ4Compressor{}}, {4, &snappy.SnappyCompressor{}}} {
		other, err := connect(address, func(cluster *gocql.ClusterConfig) {
			cluster.ProtoVersion, cluster.Compressor = kind.version, kind.compressor
		})
		if err != nil {
			return fmt.Errorf("%s v%d: %w", kind.compressor.Name(), kind.version, err)
		}
		var found string
		if err := other.Query("INSERT INTO "+full+" (k, v) VALUES (?, ?)", k, text).Exec(); err != nil {
			return fmt.Errorf("%s v%d: %w", kind.compressor.Name(), kind.version, err)
		}
		if err := other.Query("SELECT v FROM "+full+" WHERE k = ?", k).Scan(&found); err != nil {
			return fmt.Errorf("%s v%d: %w", kind.compressor.Name(), kind.version, err)
		}
		other.Close()
		if found != text {
			return fmt.Errorf("%s v%d: the text came back otherwise", kind.compressor.Name(), kind.version)
		}
	}
	return nil
}

func tracingCase(_ string, session *gocql.Session) error {
	var text bytes.Buffer
	var key string
	if err := session.Query("SELECT key FROM system.local").Trace(gocql.NewTraceWriter(session, &text)).Scan(&key); err != nil {
		return err
	}
	if !strings.Contains(text.String(), "Tracing session") {
		return fmt.Errorf("the trace: %q", text.String())
	}
	return nil
}

type listener chan gocql.OnKeyspaceCreatedEvent

func (l listener) OnKeyspaceCreated(event gocql.OnKeyspaceCreatedEvent) { l <- event }
func (l listener) OnKeyspaceUpdated(gocql.OnKeyspaceUpdatedEvent)       {}
func (l listener) OnKeyspaceDropped(gocql.OnKeyspaceDroppedEvent)       {}

func eventsCase(address string, session *gocql.Session) error {
	heard := make(listener, 10)
	other, err := connect(address, func(cluster *gocql.ClusterConfig) {
		cluster.Metadata.SchemaListener.KeyspaceChangeListener = heard
	})
	if err != nil {
		return err
	}
	defer other.Close()
	name := keyspace + "_event"
	if err := all(session, "DROP KEYSPACE IF EXISTS "+name,
		"CREATE KEYSPACE "+name+" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"); err != nil {
		return err
	}
	limit := time.After(20 * time.Second)
	for {
		select {
		case event := <-heard:
			if event.Keyspace != nil && event.Keyspace.Name == name {
				return all(session, "DROP KEYSPACE "+name)
			}
		case <-limit:
			return errors.New("no event of the new keyspace within 20 s")
		}
	}
}

func metadataIDCase(address string, session *gocql.Session) error {
	full, err := table(session, "metadata_id", "k int PRIMARY KEY, a int")
	if err != nil {
		return err
	}
	selectAll := "SELECT * FROM " + full + " WHERE k = ?"
	columns := func() (int, error) {
		iter := session.Query(selectAll, 1).Iter()
		return len(iter.Columns()), iter.Close()
	}
	before, err := columns()
	if err != nil {
		return err
	}
	other, err := connect(address, nil)
	if err != nil {
		return err
	}
	defer other.Close()
	if err := all(other, "ALTER TABLE "+full+" ADD b int", "INSERT INTO "+full+" (k, a, b) VALUES (1, 2, 3)"); err != nil {
		return err
	}
	after, err := columns()
	if err != nil {
		return err
	}
	return equal("columns before and after ALTER TABLE ADD", []int{before, after}, []int{2, 3})
}

func reprepareCase(_ string, session *gocql.Session) error {
	full, err := table(session, "reprepare", "k int PRIMARY KEY, v int")
	if err != nil {
		return err
	}
	insert := "INSERT INTO " + full + " (k, v) VALUES (?, ?)"
	if err := session.Query(insert, 1, 1).Exec(); err != nil {
		return err
	}
	if err := all(session, "DROP TABLE "+full, "CREATE TABLE "+full+" (k int PRIMARY KEY, v int)"); err != nil {
		return err
	}
	if err := session.Query(insert, 2, 2).Exec(); err != nil {
		return err
	}
	found, err := ints(session.Query("SELECT k FROM " + full).Iter())
	if err != nil {
		return err
	}
	return equal("rows", found, []int{2})
}

func main() {
	address := os.Args[1]
	if len(os.Args) == 4 && os.Args[2] == "cut" {
		if !cut(address, os.Args[3]) {
			os.Exit(1)
		}
		return
	}
	session, err := connect(address, nil)
	if err == nil {
		err = all(session, "CREATE KEYSPACE IF NOT EXISTS "+keyspace+" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	}
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
	wanted, failed := " "+strings.Join(os.Args[2:], " ")+" ", 0
	for _, test := range cases {
		if len(os.Args) > 2 && !strings.Contains(wanted, " "+test.name+" ") {
			continue
		}
		if err := test.run(address, session); err != nil {
			failed++
			fmt.Printf("FAILED %s: %v\n", test.name, err)
		} else {
			fmt.Println("ok", test.name)
		}
	}
	if err := all(session, "DROP KEYSPACE "+keyspace); err != nil || failed > 0 {
		os.Exit(1)
	}
	fmt.Println("ok")
}
