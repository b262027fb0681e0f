//! Verbs of nodetool that Helenus does not have: the reason for each, and what to use instead.

/// A group of absent verbs: the reason, and what to use instead.
struct Absent {
    verbs: &'static [&'static str],
    why: &'static str,
}

const ABSENT: &[Absent] = &[
    Absent {
        verbs: &["repair", "repair_admin", "sstablerepairedset"],
        why: "there is no other copy to repair from on one machine; helenus admin verify finds damage, helenus restore brings a \
              backup back",
    },
    Absent {
        verbs: &[
            "decommission",
            "removenode",
            "assassinate",
            "move",
            "join",
            "bootstrap",
            "abortbootstrap",
            "abortdecommission",
        ],
        why: "this server is no member of a cluster and has no tokens to give away; to leave it, helenus export writes its \
              tables for a Cassandra cluster",
    },
    Absent {
        verbs: &["rebuild"],
        why: "there is no other datacenter to stream from; helenus restore or helenus import bring data in, helenus admin \
              rebuild_index builds indexes",
    },
    Absent {
        verbs: &["relocatesstables"],
        why: "there is one data directory, so no file can be in the wrong one",
    },
    Absent {
        verbs: &[
            "gossipinfo",
            "enablegossip",
            "disablegossip",
            "statusgossip",
            "failuredetector",
            "getseeds",
            "reloadseeds",
            "checktokenmetadata",
        ],
        why: "there is no gossip: one server has nobody to talk to; helenus admin info says how it is",
    },
    Absent {
        verbs: &[
            "enablehandoff",
            "disablehandoff",
            "statushandoff",
            "pausehandoff",
            "resumehandoff",
            "sethintedhandoffthrottlekb",
            "truncatehints",
            "listpendinghints",
            "getmaxhintwindow",
            "setmaxhintwindow",
            "enablehintsfordc",
            "disablehintsfordc",
        ],
        why: "there are no hints: no write is ever owed to another node",
    },
    Absent {
        verbs: &[
            "netstats",
            "setstreamthroughput",
            "getstreamthroughput",
            "setinterdcstreamthroughput",
            "getinterdcstreamthroughput",
        ],
        why: "nothing is streamed between nodes; helenus admin compactionstats and tpstats show the work under way",
    },
    Absent {
        verbs: &["gcstats"],
        why: "there is no garbage collector and so no pause of one; helenus admin memory says where memory is",
    },
    Absent {
        verbs: &[
            "invalidatekeycache",
            "invalidaterowcache",
            "invalidatecountercache",
            "setcachecapacity",
            "setcachekeystosave",
        ],
        why: "the key, row and counter caches do not exist here; there is one cache of blocks, which helenus admin memory \
              shows and memory_limit bounds",
    },
    Absent {
        verbs: &["stopdaemon"],
        why: "send the process SIGTERM or let its service manager stop it: it answers what has come and writes everything; \
              helenus admin overview tells its process number",
    },
    Absent {
        verbs: &["enablebackup", "disablebackup", "statusbackup"],
        why: "there are no incremental backups; helenus backup takes one of everything while the server runs, by links where it \
              can",
    },
    Absent {
        verbs: &["viewbuildstatus", "getconcurrentviewbuilders", "setconcurrentviewbuilders"],
        why: "there are no materialized views yet",
    },
    Absent {
        verbs: &["proxyhistograms"],
        why: "one server coordinates only itself, so its latencies are those of its tables: helenus admin tablehistograms",
    },
    Absent {
        verbs: &["setconcurrentcompactors", "getconcurrentcompactors"],
        why: "the number of compactors is fixed at the start by concurrent_compactors; helenus admin compactionstats shows it",
    },
    Absent {
        verbs: &["stop"],
        why: "a compaction cannot be stopped one by one; helenus admin disableautocompaction lets no new one begin, \
              setcompactionthroughput slows those under way",
    },
    Absent {
        verbs: &["profileload"],
        why: "helenus admin toppartitions shows the partitions that are asked for most",
    },
    Absent {
        verbs: &["reloadlocalschema", "resetlocalschema", "reloadtriggers"],
        why: "the schema is the server's own and always the present one",
    },
    Absent {
        verbs: &["autorepairstatus", "getautorepairconfig", "setautorepairconfig"],
        why: "auto-repair has nothing to repair on one machine: there is no other copy; helenus admin verify finds damage",
    },
    Absent {
        verbs: &[
            "invalidatecredentialscache",
            "invalidatejmxpermissionscache",
            "invalidatenetworkpermissionscache",
            "invalidatepermissionscache",
            "invalidaterolescache",
            "getauthcacheconfig",
            "setauthcacheconfig",
        ],
        why: "changes by statements about roles and permissions count at once; what is written into system_auth otherwise counts \
              after roles_validity, permissions_validity or credentials_validity",
    },
    Absent {
        verbs: &["enablefullquerylog", "disablefullquerylog", "getfullquerylog", "resetfullquerylog"],
        why: "there is no full query log; slow_query_log_timeout writes slow statements to the log",
    },
    Absent {
        verbs: &["enableoldprotocolversions", "disableoldprotocolversions"],
        why: "each version of the protocol is always served; helenus admin clientstats --by-protocol shows who uses which",
    },
    Absent {
        verbs: &["replaybatchlog", "getbatchlogreplaythrottle", "setbatchlogreplaythrottle"],
        why: "there is no batchlog: a logged batch is one entry of the commit log, written whole or not at all",
    },
    Absent {
        verbs: &["getguardrailsconfig", "setguardrailsconfig"],
        why: "guardrails are settings of --config: helenus admin reloadsettings takes changed ones over, system_views.settings \
              shows them",
    },
    Absent {
        verbs: &["getcompactionthreshold", "setcompactionthreshold"],
        why: "min_threshold and max_threshold are options of a table's compaction: ALTER TABLE sets them, DESCRIBE TABLE shows \
              them",
    },
    Absent {
        verbs: &["getconcurrency", "setconcurrency"],
        why: "there are no stages; helenus admin tpstats shows the pools, whose sizes are fixed at the start",
    },
    Absent {
        verbs: &["getcolumnindexsize", "setcolumnindexsize"],
        why: "the granularity of row indexes cannot be changed here",
    },
    Absent {
        verbs: &["getdefaultrf", "setdefaultrf"],
        why: "a keyspace's replication is what CREATE KEYSPACE says; one machine keeps one copy whatever it is",
    },
    Absent {
        verbs: &["getsnapshotthrottle", "setsnapshotthrottle"],
        why: "snapshots are links and not throttled",
    },
    Absent {
        verbs: &["recompress_sstables"],
        why: "helenus admin upgradesstables -a writes SSTables anew, with the compression that their tables have now",
    },
    Absent {
        verbs: &["rangekeysample"],
        why: "no keys are sampled; helenus admin toppartitions shows the partitions that are asked for most",
    },
    Absent {
        verbs: &["sjk"],
        why: "there is no Java here; helenus admin memory and tpstats show memory and threads",
    },
];

/// All absent verbs.
pub fn verbs() -> impl Iterator<Item = &'static str> {
    ABSENT.iter().flat_map(|absent| absent.verbs).copied()
}

/// The reason why `verb` is absent, or `None` if it is not in the list.
pub fn why(verb: &str) -> Option<&'static str> {
    ABSENT.iter().find(|absent| absent.verbs.contains(&verb)).map(|absent| absent.why)
}
