//! The kinds of tokens and their properties: name in error texts, spellings, and for words how far they are reserved.
//!
//! One table drives the lexer's keyword search, the parser's decisions (may this word be a column name?) and the error
//! texts. The words and their classes are those of Cassandra 5.0.9's grammar (the `K_` tokens, and the rules
//! `basic_unreserved_keyword`, `unreserved_function_keyword` and `unreserved_keyword`).

/// How far a word is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Not a word.
    Symbol,
    /// Only usable as a name between double quotes.
    Reserved,
    /// Usable as any name.
    Basic,
    /// The name of a native type: usable as any name except that of a user-defined type.
    Native,
    /// Usable as a name, except that of a function.
    Other,
}

macro_rules! tokens {
    (words { $($word:ident $class:ident $label:literal [$($text:literal),+];)* } symbols { $($symbol:ident $shown:literal;)* }) => {
        /// The kind of a token. The words come first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind {
            $(#[doc = concat!("The word `", $label, "`.")] $word,)*
            $(#[doc = concat!("Shown in error texts as `", $shown, "`.")] $symbol,)*
        }

        impl Kind {
            /// The name of this kind in an error text, after "expecting".
            pub const fn label(self) -> &'static str {
                match self {
                    $(Kind::$word => $label,)*
                    $(Kind::$symbol => $shown,)*
                }
            }

            /// How far this word is reserved.
            #[inline]
            pub const fn class(self) -> Class {
                match self {
                    $(Kind::$word => Class::$class,)*
                    $(Kind::$symbol => Class::Symbol,)*
                }
            }
        }

        /// Every spelling of every word, in lower case.
        pub(super) const WORDS: &[(&str, Kind)] = &[$($(($text, Kind::$word),)+)*];
    };
}

tokens! {
    words {
        Access Basic "K_ACCESS" ["access"];
        Add Reserved "K_ADD" ["add"];
        Aggregate Basic "K_AGGREGATE" ["aggregate"];
        Aggregates Basic "K_AGGREGATES" ["aggregates"];
        All Basic "K_ALL" ["all"];
        Allow Reserved "K_ALLOW" ["allow"];
        Alter Reserved "K_ALTER" ["alter"];
        And Reserved "K_AND" ["and"];
        Ann Basic "K_ANN" ["ann"];
        Apply Reserved "K_APPLY" ["apply"];
        As Basic "K_AS" ["as"];
        Asc Reserved "K_ASC" ["asc"];
        Ascii Native "K_ASCII" ["ascii"];
        Authorize Reserved "K_AUTHORIZE" ["authorize"];
        Batch Reserved "K_BATCH" ["batch"];
        Begin Reserved "K_BEGIN" ["begin"];
        Bigint Native "K_BIGINT" ["bigint"];
        Blob Native "K_BLOB" ["blob"];
        Boolean Native "K_BOOLEAN" ["boolean"];
        By Reserved "K_BY" ["by"];
        Called Basic "K_CALLED" ["called"];
        Cast Other "K_CAST" ["cast"];
        Cidrs Basic "K_CIDRS" ["cidrs"];
        Cluster Basic "K_CLUSTER" ["cluster"];
        Clustering Basic "K_CLUSTERING" ["clustering"];
        Columnfamily Reserved "K_COLUMNFAMILY" ["table", "columnfamily"];
        Compact Basic "K_COMPACT" ["compact"];
        Contains Basic "K_CONTAINS" ["contains"];
        Count Other "K_COUNT" ["count"];
        Counter Native "K_COUNTER" ["counter"];
        Create Reserved "K_CREATE" ["create"];
        Custom Basic "K_CUSTOM" ["custom"];
        Datacenters Basic "K_DATACENTERS" ["datacenters"];
        Date Native "K_DATE" ["date"];
        Decimal Native "K_DECIMAL" ["decimal"];
        Default Basic "K_DEFAULT" ["default"];
        Delete Reserved "K_DELETE" ["delete"];
        Desc Reserved "K_DESC" ["desc"];
        Describe Reserved "K_DESCRIBE" ["describe"];
        Distinct Other "K_DISTINCT" ["distinct"];
        Double Native "K_DOUBLE" ["double"];
        Drop Reserved "K_DROP" ["drop"];
        Duration Native "K_DURATION" ["duration"];
        Entries Reserved "K_ENTRIES" ["entries"];
        Execute Reserved "K_EXECUTE" ["execute"];
        Exists Basic "K_EXISTS" ["exists"];
        Filtering Basic "K_FILTERING" ["filtering"];
        Finalfunc Basic "K_FINALFUNC" ["finalfunc"];
        Float Native "K_FLOAT" ["float"];
        From Reserved "K_FROM" ["from"];
        Frozen Basic "K_FROZEN" ["frozen"];
        Full Reserved "K_FULL" ["full"];
        Function Basic "K_FUNCTION" ["function"];
        Functions Basic "K_FUNCTIONS" ["functions"];
        Grant Reserved "K_GRANT" ["grant"];
        Group Basic "K_GROUP" ["group"];
        Hashed Basic "K_HASHED" ["hashed"];
        Identity Basic "K_IDENTITY" ["identity"];
        If Reserved "K_IF" ["if"];
        In Reserved "K_IN" ["in"];
        Index Reserved "K_INDEX" ["index"];
        Inet Native "K_INET" ["inet"];
        Initcond Basic "K_INITCOND" ["initcond"];
        Input Basic "K_INPUT" ["input"];
        Insert Reserved "K_INSERT" ["insert"];
        Int Native "K_INT" ["int"];
        Internals Basic "K_INTERNALS" ["internals"];
        Into Reserved "K_INTO" ["into"];
        Is Reserved "K_IS" ["is"];
        Json Other "K_JSON" ["json"];
        Key Other "K_KEY" ["key"];
        Keys Basic "K_KEYS" ["keys"];
        Keyspace Reserved "K_KEYSPACE" ["keyspace"];
        Keyspaces Basic "K_KEYSPACES" ["keyspaces"];
        Language Basic "K_LANGUAGE" ["language"];
        Like Basic "K_LIKE" ["like"];
        Limit Reserved "K_LIMIT" ["limit"];
        List Basic "K_LIST" ["list"];
        Login Basic "K_LOGIN" ["login"];
        Map Basic "K_MAP" ["map"];
        Masked Basic "K_MASKED" ["masked"];
        Materialized Reserved "K_MATERIALIZED" ["materialized"];
        Maxwritetime Other "K_MAXWRITETIME" ["maxwritetime"];
        Mbean Basic "K_MBEAN" ["mbean"];
        Mbeans Basic "K_MBEANS" ["mbeans"];
        Modify Reserved "K_MODIFY" ["modify"];
        Nologin Basic "K_NOLOGIN" ["nologin"];
        Norecursive Reserved "K_NORECURSIVE" ["norecursive"];
        Nosuperuser Basic "K_NOSUPERUSER" ["nosuperuser"];
        Not Reserved "K_NOT" ["not"];
        Null Reserved "K_NULL" ["null"];
        Of Reserved "K_OF" ["of"];
        On Reserved "K_ON" ["on"];
        Only Basic "K_ONLY" ["only"];
        Options Basic "K_OPTIONS" ["options"];
        Or Reserved "K_OR" ["or"];
        Order Reserved "K_ORDER" ["order"];
        Partition Basic "K_PARTITION" ["partition"];
        Password Basic "K_PASSWORD" ["password"];
        Per Basic "K_PER" ["per"];
        Permission Basic "K_PERMISSION" ["permission"];
        Permissions Basic "K_PERMISSIONS" ["permissions"];
        PositiveInfinity Reserved "K_POSITIVE_INFINITY" ["infinity"];
        PositiveNan Reserved "K_POSITIVE_NAN" ["nan"];
        Primary Reserved "K_PRIMARY" ["primary"];
        Rename Reserved "K_RENAME" ["rename"];
        Replace Basic "K_REPLACE" ["replace"];
        Returns Basic "K_RETURNS" ["returns"];
        Revoke Reserved "K_REVOKE" ["revoke"];
        Role Basic "K_ROLE" ["role"];
        Roles Basic "K_ROLES" ["roles"];
        Schema Reserved "K_SCHEMA" ["schema"];
        Select Reserved "K_SELECT" ["select"];
        SelectMasked Basic "K_SELECT_MASKED" ["select_masked"];
        Set Reserved "K_SET" ["set"];
        Sfunc Basic "K_SFUNC" ["sfunc"];
        Smallint Native "K_SMALLINT" ["smallint"];
        Static Basic "K_STATIC" ["static"];
        Storage Basic "K_STORAGE" ["storage"];
        Stype Basic "K_STYPE" ["stype"];
        Superuser Basic "K_SUPERUSER" ["superuser"];
        Tables Basic "K_TABLES" ["tables", "columnfamilies"];
        Text Native "K_TEXT" ["text"];
        Time Native "K_TIME" ["time"];
        Timestamp Native "K_TIMESTAMP" ["timestamp"];
        Timeuuid Native "K_TIMEUUID" ["timeuuid"];
        Tinyint Native "K_TINYINT" ["tinyint"];
        To Reserved "K_TO" ["to"];
        Token Reserved "K_TOKEN" ["token"];
        Trigger Basic "K_TRIGGER" ["trigger"];
        Truncate Reserved "K_TRUNCATE" ["truncate"];
        Ttl Other "K_TTL" ["ttl"];
        Tuple Basic "K_TUPLE" ["tuple"];
        Type Basic "K_TYPE" ["type"];
        Types Basic "K_TYPES" ["types"];
        Unlogged Reserved "K_UNLOGGED" ["unlogged"];
        Unmask Basic "K_UNMASK" ["unmask"];
        Unset Basic "K_UNSET" ["unset"];
        Update Reserved "K_UPDATE" ["update"];
        Use Reserved "K_USE" ["use"];
        User Basic "K_USER" ["user"];
        Users Basic "K_USERS" ["users"];
        Using Reserved "K_USING" ["using"];
        Uuid Native "K_UUID" ["uuid"];
        Values Basic "K_VALUES" ["values"];
        Varchar Native "K_VARCHAR" ["varchar"];
        Varint Native "K_VARINT" ["varint"];
        Vector Basic "K_VECTOR" ["vector"];
        View Reserved "K_VIEW" ["view"];
        Where Reserved "K_WHERE" ["where"];
        With Reserved "K_WITH" ["with"];
        Writetime Other "K_WRITETIME" ["writetime"];
        Bool Reserved "BOOLEAN" ["true", "false"];
    }
    symbols {
        Ident "IDENT";
        QuotedName "QUOTED_NAME";
        EmptyQuotedName "EMPTY_QUOTED_NAME";
        String "STRING_LITERAL";
        Integer "INTEGER";
        FloatNumber "FLOAT";
        DurationLiteral "DURATION";
        UuidLiteral "UUID";
        Hex "HEXNUMBER";
        NegativeNan "K_NEGATIVE_NAN";
        NegativeInfinity "K_NEGATIVE_INFINITY";
        QMark "QMARK";
        Range "RANGE";
        NotEqual "'!='";
        Percent "'%'";
        LParen "'('";
        RParen "')'";
        Plus "'+'";
        PlusEqual "'+='";
        Comma "','";
        Minus "'-'";
        MinusEqual "'-='";
        Dot "'.'";
        Slash "'/'";
        Colon "':'";
        Semicolon "';'";
        Less "'<'";
        LessEqual "'<='";
        Equal "'='";
        Greater "'>'";
        GreaterEqual "'>='";
        LBracket "'['";
        Star "'\\*'";
        RBracket "']'";
        ExprParen "'expr('";
        LBrace "'{'";
        RBrace "'}'";
        Eof "EOF";
        Bad "<invalid>";
    }
}

/// One token: its kind and the range of its text.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Its kind.
    pub kind: Kind,
    /// The byte offset of its first byte.
    pub start: u32,
    /// The byte offset after its last byte.
    pub end: u32,
}

impl Kind {
    /// Whether it can name a column, field, keyspace, table, index or alias (`ident`, `fident`, `noncol_ident` of the
    /// grammar).
    #[inline]
    pub const fn is_name(self) -> bool {
        matches!(self, Kind::Ident | Kind::QuotedName)
            || matches!(self.class(), Class::Basic | Class::Native | Class::Other)
    }

    /// Whether it can name a column where the empty name is allowed too (`cident`).
    #[inline]
    pub const fn is_column(self) -> bool {
        self.is_name() || matches!(self, Kind::EmptyQuotedName)
    }

    /// Whether it can name a function without keyspace (`allowedFunctionName`).
    #[inline]
    pub const fn is_function_name(self) -> bool {
        matches!(self, Kind::Ident | Kind::QuotedName | Kind::Token | Kind::Count)
            || matches!(self.class(), Class::Basic | Class::Native)
    }

    /// Whether it can name a user-defined type without keyspace (`non_type_ident`).
    #[inline]
    pub const fn is_type_name(self) -> bool {
        matches!(self, Kind::Ident | Kind::QuotedName | Kind::Key) || matches!(self.class(), Class::Basic)
    }

    /// Whether it is a constant (`constant`).
    #[inline]
    pub const fn is_constant(self) -> bool {
        matches!(
            self,
            Kind::String
                | Kind::Integer
                | Kind::FloatNumber
                | Kind::Bool
                | Kind::DurationLiteral
                | Kind::UuidLiteral
                | Kind::Hex
                | Kind::PositiveNan
                | Kind::NegativeNan
                | Kind::PositiveInfinity
                | Kind::NegativeInfinity
        )
    }
}
