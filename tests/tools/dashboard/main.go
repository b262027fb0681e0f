// Asks a server for every query of a Grafana dashboard, through Prometheus's own parser, storage and engine.
//
//	helenus serve --memory --http 127.0.0.1:9180 & helenus stress interfaces ... &
//	cd tests/tools/dashboard && go run . ../../../docs/grafana/helenus.json http://127.0.0.1:9180/metrics
//
// The page is scraped -times times, -every apart; the samples are kept as if they were 15 seconds apart, as Prometheus's default
// has them, so that rates over minutes have something to stand on. Each query is parsed and run at the last moment. Ends with
// status 1 when one is no PromQL or fails; queries without an answer are named (on an idle server some have none).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-kit/log"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

const apart = 15 * time.Second

// Panel is what matters of a panel here; rows have panels of their own.
type Panel struct {
	Title   string
	Type    string
	Targets []struct{ Expr string }
	Panels  []Panel
}

// Dashboard is its panels, and the variables that queries name.
type Dashboard struct {
	Title      string
	Panels     []Panel
	Templating struct {
		List []struct {
			Name  string
			Type  string
			Query json.RawMessage
		}
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// What Grafana puts into a query before it sends it.
func filledIn(expr string) string {
	for name, value := range map[string]string{
		"$__rate_interval": "1m", "${__rate_interval}": "1m", "$__interval": "15s", "$__range": "5m",
	} {
		expr = strings.ReplaceAll(expr, name, value)
	}
	return regexp.MustCompile(`\$\{?[A-Za-z_]+(:[a-z]+)?\}?`).ReplaceAllString(expr, ".*")
}

func scrape(url string, head *tsdb.DB, at time.Time) int {
	answer, err := http.Get(url)
	fail(err)
	page, err := io.ReadAll(answer.Body)
	fail(err)
	fail(answer.Body.Close())
	read := textparse.NewPromParser(page, labels.NewSymbolTable())
	app := head.Appender(context.Background())
	samples := 0
	for {
		entry, err := read.Next()
		if err == io.EOF {
			break
		}
		fail(err)
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := read.Series()
		var of labels.Labels
		read.Metric(&of)
		of = labels.NewBuilder(of).Set("job", "helenus").Set("instance", "127.0.0.1:9180").Labels()
		_, err = app.Append(0, of, at.UnixMilli(), value)
		fail(err)
		samples++
	}
	fail(app.Commit())
	return samples
}

func main() {
	times := flag.Int("times", 12, "how often the page is scraped")
	every := flag.Duration("every", time.Second, "between two scrapes")
	flag.Parse()
	if flag.NArg() != 2 {
		fail(fmt.Errorf("usage: dashboard [-times N] [-every TIME] DASHBOARD.json http://HOST:PORT/metrics"))
	}
	text, err := os.ReadFile(flag.Arg(0))
	fail(err)
	var dashboard Dashboard
	fail(json.Unmarshal(text, &dashboard))
	folder, err := os.MkdirTemp("", "dashboard-")
	fail(err)
	defer os.RemoveAll(folder)
	db, err := tsdb.Open(folder, log.NewNopLogger(), nil, tsdb.DefaultOptions(), nil)
	fail(err)
	now := time.Now()
	var samples int
	for n := range *times {
		if n > 0 {
			time.Sleep(*every)
		}
		samples = scrape(flag.Arg(1), db, now.Add(time.Duration(n-*times)*apart))
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute})
	var panels func([]Panel)
	asked, answered, wrong := 0, 0, 0
	panels = func(of []Panel) {
		for _, panel := range of {
			panels(panel.Panels)
			for _, target := range panel.Targets {
				asked++
				expr := filledIn(target.Expr)
				if _, err := parser.ParseExpr(expr); err != nil {
					fmt.Printf("WRONG    %s: %s: %v\n", panel.Title, target.Expr, err)
					wrong++
					continue
				}
				query, err := engine.NewInstantQuery(context.Background(), db, nil, expr, now.Add(-apart))
				fail(err)
				result := query.Exec(context.Background())
				if result.Err != nil {
					fmt.Printf("FAILED   %s: %s: %v\n", panel.Title, expr, result.Err)
					wrong++
					continue
				}
				found := 0
				switch value := result.Value.(type) {
				case promql.Vector:
					found = len(value)
				case promql.Scalar:
					found = 1
				}
				if found == 0 {
					fmt.Printf("nothing  %s: %s\n", panel.Title, expr)
				} else {
					answered++
				}
			}
		}
	}
	panels(dashboard.Panels)
	for _, variable := range dashboard.Templating.List {
		fmt.Printf("variable %s (%s): %s\n", variable.Name, variable.Type, variable.Query)
	}
	fmt.Printf("%s: %d samples a page, %d queries, %d with an answer, %d wrong\n", dashboard.Title, samples, asked, answered, wrong)
	fail(db.Close())
	if wrong > 0 || asked == 0 {
		os.Exit(1)
	}
}
