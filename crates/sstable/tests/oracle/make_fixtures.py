# Made the tables under tests/fixtures: run against a node started by cassandra.sh with SSTABLE_FORMAT=bti in /tmp/oracle.
import subprocess, glob, os, shutil, sys, uuid, decimal
from cassandra.cluster import Cluster
from cassandra.query import BatchStatement
c = Cluster(['127.0.0.1']); s = c.connect()
s.default_timeout=60
s.execute("DROP KEYSPACE IF EXISTS data_fx")
s.execute("CREATE KEYSPACE data_fx WITH replication={'class':'SimpleStrategy','replication_factor':1}")
s.set_keyspace('data_fx')
tables = {}
def create(name, cql):
    s.execute(cql); tables[name]=cql
def x(q, *a): s.execute(q, a) if a else s.execute(q)
# simple
create('simple', "CREATE TABLE simple (k int PRIMARY KEY, a text, b int, c blob) WITH compression={'class':'LZ4Compressor'}")
for i in range(200):
    x(f"INSERT INTO simple (k,a,b,c) VALUES ({i},'value {i}',{i*7},0x{i:04x}) USING TIMESTAMP {1000000+i}")
x("DELETE FROM simple USING TIMESTAMP 2000000 WHERE k=5"); x("DELETE a FROM simple USING TIMESTAMP 2000001 WHERE k=6")
x("UPDATE simple USING TIMESTAMP 2000002 SET a='only a' WHERE k=1000"); x("INSERT INTO simple (k,a) VALUES (7,'') USING TIMESTAMP 2000003")
x("INSERT INTO simple (k,a,b) VALUES (8,'ttl',8) USING TIMESTAMP 2000004 AND TTL 100000000"); x("UPDATE simple USING TIMESTAMP 2000005 AND TTL 500000000 SET b=1 WHERE k=9")
# wide: static columns, collections, udt, markers
x("CREATE TYPE addr (street text, no int)")
create('mixed', """CREATE TABLE mixed (p text, q int, c1 text, c2 int, s1 text static, s2 map<text,int> static,
  v text, n bigint, l list<int>, st set<text>, m map<int,text>, u addr, fu frozen<addr>, fl frozen<list<int>>, tu tuple<int,text>, PRIMARY KEY ((p,q),c1,c2))
  WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)""")
ts=10_000_000
for p in range(6):
    for a in range(5):
        for b in range(8):
            ts+=1
            x(f"INSERT INTO mixed (p,q,c1,c2,v,n) VALUES ('p{p}',{p},'c{a}',{b},'v{ts}',{ts}) USING TIMESTAMP {ts}")
    ts+=1
    x(f"UPDATE mixed USING TIMESTAMP {ts} SET s1='static {p}', s2={{'a':1,'b':2}} WHERE p='p{p}' AND q={p}") if p!=3 else None
x("UPDATE mixed USING TIMESTAMP 20000001 SET l=[1,2,3], st={'x','y',''}, m={1:'one',2:''}, u={street:'s',no:4}, fu={street:'f',no:null}, fl=[5,6], tu=(1,null) WHERE p='p0' AND q=0 AND c1='c1' AND c2=2")
x("UPDATE mixed USING TIMESTAMP 20000002 SET l=l+[4], m[7]='seven', u.no=null WHERE p='p0' AND q=0 AND c1='c1' AND c2=3")
x("DELETE m[1], st FROM mixed USING TIMESTAMP 20000003 WHERE p='p0' AND q=0 AND c1='c1' AND c2=4")
x("DELETE FROM mixed USING TIMESTAMP 20000004 WHERE p='p1' AND q=1 AND c1='c2' AND c2=2")
x("DELETE FROM mixed USING TIMESTAMP 20000005 WHERE p='p1' AND q=1 AND c1='c3'")
x("DELETE FROM mixed USING TIMESTAMP 20000006 WHERE p='p2' AND q=2 AND c1='c2' AND c2>=2 AND c2<5")
x("DELETE FROM mixed USING TIMESTAMP 20000007 WHERE p='p2' AND q=2 AND c1='c2' AND c2>=4 AND c2<=6")
x("DELETE FROM mixed USING TIMESTAMP 20000008 WHERE p='p2' AND q=2 AND c1>='c0' AND c1<'c2'")
x("DELETE FROM mixed USING TIMESTAMP 20000009 WHERE p='p2' AND q=2 AND c1>'zz'")
x("DELETE FROM mixed USING TIMESTAMP 20000010 WHERE p='p4' AND q=4")
x("DELETE FROM mixed USING TIMESTAMP 20000011 WHERE p='gone' AND q=4")
x("INSERT INTO mixed (p,q,c1,c2,v) VALUES ('p4',4,'',1,'after') USING TIMESTAMP 20000012")
x("INSERT INTO mixed (p,q,c1,c2,v,m) VALUES ('p4',4,'t',1,'ttl',{5:'five'}) USING TIMESTAMP 20000013 AND TTL 300000000")
x("DELETE s1, s2['a'] FROM mixed USING TIMESTAMP 20000014 WHERE p='p5' AND q=5")
# wide partitions with many blocks
create('wide', "CREATE TABLE wide (k int, c bigint, d text, v text, PRIMARY KEY (k,c,d)) WITH CLUSTERING ORDER BY (c DESC, d ASC) AND compression={'class':'LZ4Compressor','chunk_length_in_kb':4}")
pr = s.prepare("INSERT INTO wide (k,c,d,v) VALUES (?,?,?,?) USING TIMESTAMP ?")
futs=[]
for k in range(3):
    for i in range(1200):
        futs.append(s.execute_async(pr,(k,i//3,f'd{i%3}', 'x'*(i%90+20), 30_000_000+i)))
for f in futs: f.result()
x("DELETE FROM wide USING TIMESTAMP 40000000 WHERE k=1 AND c>100 AND c<=250")
x("DELETE FROM wide USING TIMESTAMP 40000001 WHERE k=1 AND c>=200 AND c<=260")
x("DELETE FROM wide USING TIMESTAMP 40000002 WHERE k=2 AND c<40")
x("DELETE FROM wide USING TIMESTAMP 40000003 WHERE k=2 AND c=77 AND d='d1'")
# uncompressed, many columns
cols = ', '.join(f'v{i:02d} int' for i in range(70))
create('many', f"CREATE TABLE many (k int, c int, {cols}, PRIMARY KEY (k,c)) WITH compression={{'enabled':false}}")
for i in range(40):
    some=[j for j in range(70) if (j*7+i*3)%(i%9+1)==0] or [1]
    x(f"INSERT INTO many (k,c,{','.join(f'v{j:02d}' for j in some)}) VALUES ({i%4},{i},{','.join(str(j+i) for j in some)}) USING TIMESTAMP {50000000+i}")
# empty values of fixed types in clustering, many types
create('types', """CREATE TABLE types (k blob, ci int, cu uuid, ct timestamp, cd decimal, cv varint, cb boolean, ca ascii, ft float, dt date, tm time, si smallint, ti tinyint, ip inet, du duration, ve vector<float,3>, PRIMARY KEY (k,ci,cu,ct,cd,cv,cb,ca))
   WITH CLUSTERING ORDER BY (ci ASC, cu DESC, ct DESC, cd ASC, cv DESC, cb ASC, ca DESC) AND compression={'class':'ZstdCompressor'}""")
u='00000000-0000-1000-8000-00000000000'
n=0
for ci in ['1','-5','blobAsInt(0x)']:
  for cu in [u+'1', 'blobAsUuid(0x)']:
    for cd,cv in [('1.50','-300'),('-0.001','0'),('1.5','99999999999999999999')]:
        n+=1
        try: x(f"INSERT INTO types (k,ci,cu,ct,cd,cv,cb,ca,ft,dt,tm,si,ti,ip,du,ve) VALUES (0x01,{ci},{cu},{n*1000},{cd},{cv},{'true' if n%2 else 'false'},'a{n}',1.5,'2020-01-01','10:00:00',-3,4,'10.0.0.{n}',1y2mo3d4h,[1.0,2.0,{n}]) USING TIMESTAMP {60000000+n}")
        except Exception as e: print(e)
x(f"INSERT INTO types (k,ci,cu,ct,cd,cv,cb,ca) VALUES (0x,1,{u}2,blobAsTimestamp(0x),blobAsDecimal(0x),blobAsVarint(0x),blobAsBoolean(0x),'') USING TIMESTAMP 61000000") if False else None
x(f"INSERT INTO types (k,ci,cu,ct,cd,cv,cb,ca) VALUES (0x02,1,{u}2,blobAsTimestamp(0x),blobAsDecimal(0x),blobAsVarint(0x),blobAsBoolean(0x),'') USING TIMESTAMP 61000000")
# dropped column
create('dropped', "CREATE TABLE dropped (k int, c int, a int, b map<int,int>, d text, PRIMARY KEY (k,c))")
for i in range(10): x(f"INSERT INTO dropped (k,c,a,b,d) VALUES (1,{i},{i},{{1:{i}}},'d{i}') USING TIMESTAMP {70000000+i}")
x("UPDATE dropped USING TIMESTAMP 70000100 SET b={2:3} WHERE k=1 AND c=100")
# counters
create('counts', "CREATE TABLE counts (k int, c int, n counter, PRIMARY KEY (k,c))")
for i in range(20): x(f"UPDATE counts SET n=n+{i+1} WHERE k={i%3} AND c={i}")
x("DELETE n FROM counts WHERE k=1 AND c=4")
create('compactless', "CREATE TABLE compactless (k text PRIMARY KEY)")
for i in range(500): x(f"INSERT INTO compactless (k) VALUES ('key{i}') USING TIMESTAMP {80000000+i}")
out='/work/main/crates/sstable/tests/fixtures'
os.makedirs(out, exist_ok=True)
for t,cql in tables.items():
    subprocess.run(['bash','/work/shared/tools/cassandra.sh','nodetool','/tmp/oracle','flush','data_fx',t],check=True)
    d=glob.glob(f'/tmp/oracle/data/data_fx/{t}-*')[0]
    dst=f'{out}/{t}'; shutil.rmtree(dst,ignore_errors=True); os.makedirs(dst)
    datas=glob.glob(d+'/*-Data.db'); assert len(datas)==1,(t,datas)
    for f in glob.glob(d+'/da-*'):
        shutil.copy(f, dst+'/da-1-bti-'+f.rsplit('-',1)[1])
    open(dst+'/schema.cql','w').write(cql+';\n')
print('done')
