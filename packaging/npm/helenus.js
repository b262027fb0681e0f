#!/usr/bin/env node
// Runs the program of the package for this processor, with the same arguments and signals.

const { spawn } = require("node:child_process");

const name = `helenusdb-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/helenus`);
} catch {
  console.error(`helenus: the package ${name} is not installed; there are packages for Linux on x64 and arm64`);
  process.exit(1);
}
const parent = process.ppid;
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
// npx and npm end themselves and the shell between without a word to this process. Started otherwise, as by nohup, the program
// may outlive its parent.
if (process.env.npm_command) {
  const watch = setInterval(() => {
    if (process.ppid !== parent) {
      clearInterval(watch);
      child.kill("SIGTERM");
    }
  }, 200);
  watch.unref();
}
child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));
