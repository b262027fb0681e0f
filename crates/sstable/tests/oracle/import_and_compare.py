# Imports tables that examples/rewrite wrote (/tmp/data-out/fx/<table><row index block bytes>) into a node, verified, and
# compares its answers with those on the tables it wrote itself (keyspace data_fx of make_fixtures.py).
import subprocess, glob, os, shutil, re
from cassandra.cluster import Cluster
c = Cluster(['127.0.0.1']); s = c.connect(); s.default_timeout=60
s.execute("DROP KEYSPACE IF EXISTS data_rw")
s.execute("CREATE KEYSPACE data_rw WITH replication={'class':'SimpleStrategy','replication_factor':1}")
s.set_keyspace('data_rw'); s.execute("CREATE TYPE addr (street text, no int)")
F='/work/main/crates/sstable/tests/fixtures'
ok=True
for g in ['200','16384']:
  for t in ['simple','mixed','wide','many','types','dropped','compactless','counts']:
    s.execute(f"DROP TABLE IF EXISTS data_rw.{t}")
    s.execute(open(f'{F}/{t}/schema.cql').read().strip().rstrip(';'))
    r=subprocess.run(['bash','/work/shared/tools/cassandra.sh','nodetool','/tmp/oracle','import','--copy-data','--extended-verify','data_rw',t,f'/tmp/data-out/fx/{t}{g}'],capture_output=True,text=True)
    q=lambda ks,where='': [tuple(map(repr,x)) for x in s.execute(f"SELECT * FROM {ks}.{t} {where}")]
    a,b=q('data_fx'),q('data_rw')
    print(t,g,'import',r.returncode,(r.stdout+r.stderr)[-300:].strip(),'rows',len(b),'same' if a==b else 'DIFF'); ok&=a==b and r.returncode==0
    wheres=[]
    if t=='wide':
        for k in range(3):
            for lo,hi in [(10,20),(70,300),(199,203),(95,105),(0,400),(255,262),(300,300)]:
                wheres.append(f"WHERE k={k} AND c>={lo} AND c<={hi}"); wheres.append(f"WHERE k={k} AND c>{lo} AND c<{hi} ORDER BY c ASC")
                wheres.append(f"WHERE k={k} AND c={lo} AND d>='d1'"); wheres.append(f"WHERE k={k} AND c IN ({lo},{hi},5) AND d='d2'")
    if t=='mixed':
        for p in range(6):
            wheres += [f"WHERE p='p{p}' AND q={p} AND c1='c2' AND c2>2", f"WHERE p='p{p}' AND q={p} AND c1>='c1' AND c1<='c3' ORDER BY c1 ASC, c2 DESC", f"WHERE p='p{p}' AND q={p} AND c1='c0' ORDER BY c1 ASC, c2 DESC LIMIT 3"]
    for w in wheres:
        a,b=q('data_fx',w),q('data_rw',w)
        if a!=b: print('DIFF',t,g,w,len(a),len(b)); ok=False
    if wheres: print(t,len(wheres),'queries compared')
print('ALL OK' if ok else 'FAILED')
