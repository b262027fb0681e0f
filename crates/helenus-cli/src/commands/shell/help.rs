//! The texts of HELP.

/// A help topic: its name, a summary of one line, and the full text.
struct Topic {
    name: &'static str,
    line: &'static str,
    text: &'static str,
}

const TOPICS: &[Topic] = &[
    Topic {
        name: "CAPTURE",
        line: "results into a file",
        text: "CAPTURE '<file>'   appends results to the file instead of showing them; errors are still shown\nCAPTURE OFF        shows results again\nCAPTURE            says where they go",
    },
    Topic { name: "CLEAR", line: "clear the screen", text: "CLEAR (or CLS) clears the screen." },
    Topic {
        name: "CONSISTENCY",
        line: "consistency level of statements",
        text: "CONSISTENCY <level>   ANY, ONE, TWO, THREE, QUORUM, ALL, LOCAL_QUORUM, EACH_QUORUM, SERIAL,\n                      LOCAL_SERIAL, LOCAL_ONE, NODE_LOCAL; ONE at first\nCONSISTENCY           shows it",
    },
    Topic { name: "COPY", line: "a table to a file, or a file into a table", text: super::copy::HELP },
    Topic {
        name: "DESCRIBE",
        line: "what the schema is, as CQL",
        text: "DESCRIBE KEYSPACES | TABLES | TYPES | FUNCTIONS | AGGREGATES\nDESCRIBE KEYSPACE [<name>], TABLE <name>, TYPE <name>, INDEX <name>, ...\nDESCRIBE [FULL] SCHEMA\nDESCRIBE CLUSTER\nDESCRIBE <name>\n\nDESC is the same. The server answers it: Helenus, Cassandra from 4.0 on.",
    },
    Topic { name: "EXIT", line: "leave the shell", text: "EXIT, QUIT, \\q or Ctrl-D leave the shell." },
    Topic {
        name: "EXPAND",
        line: "rows one below the other",
        text: "EXPAND ON | OFF   shows each row as a block with a line a column\nEXPAND AUTO       does so for tables wider than the terminal, as at the start\nEXPAND            says which",
    },
    Topic {
        name: "EXPLAIN",
        line: "how a statement is run (Helenus)",
        text: "EXPLAIN <statement>          what will be read, from where\nEXPLAIN ANALYZE <statement>  runs it, writes too, and says what it took\n\nDrawn as a tree; a bar is as long as the share of a stage in the whole. FORMAT JSON or --format gives it to programs.",
    },
    Topic {
        name: "FORMAT",
        line: "table, json or csv",
        text: "FORMAT TABLE | JSON | CSV   how results are shown; json is one object a line\nFORMAT                      says which",
    },
    Topic {
        name: "HISTORY",
        line: "statements of before",
        text: "HISTORY [<n>]   shows the last 50 statements, or the last n. Arrow keys and Ctrl-R find them.\nStatements with passwords are not kept.",
    },
    Topic {
        name: "LOGIN",
        line: "be somebody else",
        text: "LOGIN <name> ['<password>']   logs in again; asks for the password if it is left out",
    },
    Topic {
        name: "PAGING",
        line: "rows a page",
        text: "PAGING ON | OFF | <rows>   how many rows are asked for, and shown on a terminal, at a time; 100 at first\nPAGING                     says how many",
    },
    Topic {
        name: "SERIAL",
        line: "consistency level of conditions",
        text: "SERIAL CONSISTENCY SERIAL | LOCAL_SERIAL   for conditional statements; SERIAL at first\nSERIAL CONSISTENCY                         shows it",
    },
    Topic {
        name: "SHOW",
        line: "server, versions, a trace",
        text: "SHOW VERSION        of this shell, the server, CQL and the protocol\nSHOW HOST           where this is connected to\nSHOW SESSION <id>   a trace of before",
    },
    Topic {
        name: "SOURCE",
        line: "run a file",
        text: "SOURCE '<file>'   runs the statements of a file. One that fails is told, and the next runs.",
    },
    Topic {
        name: "TIMING",
        line: "how long each statement takes",
        text: "TIMING ON | OFF   shows after each statement what it took, from here\nTIMING            says which",
    },
    Topic {
        name: "TRACING",
        line: "what the server did",
        text: "TRACING ON | OFF   shows the trace of each statement after its result\nTRACING            says which",
    },
];

const BACKSLASH: &str = "\
As in psql:   \\l keyspaces   \\d tables   \\d <table>   \\dT types   \\c <keyspace>   \\x [on|off]   \\timing [on|off]
              \\i <file>   \\o <file>   \\s history   \\conninfo   \\q";

/// The text of HELP, or of the given topics.
pub fn help(topics: &[String]) -> String {
    if topics.is_empty() {
        let mut out =
            String::from("\nStatements end with a semicolon; TAB completes. The shell's own commands:\n\n");
        for topic in TOPICS {
            out.push_str(&format!("  {:<12} {}\n", topic.name, topic.line));
        }
        out.push_str(&format!("\nHELP <command> tells more.\n\n{BACKSLASH}\n\n"));
        return out;
    }
    let mut out = String::new();
    for name in topics {
        match TOPICS.iter().find(|topic| topic.name.eq_ignore_ascii_case(name)) {
            Some(topic) => out.push_str(&format!("\n{}\n\n", topic.text)),
            None => out.push_str(&format!(
                "No help on {name}. HELP lists what there is; for CQL see https://cassandra.apache.org/doc/latest/cassandra/developing/cql/\n"
            )),
        }
    }
    out
}

/// The names of all topics.
pub fn topics() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|topic| topic.name)
}
