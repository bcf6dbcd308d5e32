#!/usr/bin/env node
import * as module from "node:module";

// Node 20 has none; with it the modules are compiled once, not at every start.
module.enableCompileCache?.();

const { run } = await import("../dist/cli.js");
await run(process.argv.slice(2));
