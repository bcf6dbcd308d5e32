#!/usr/bin/env node
import * as module from "node:module";

// Node 20 has none; with it the libraries are compiled once, not at every start.
module.enableCompileCache?.();

const { runCommandLine } = await import("../dist/cli.js");
process.exitCode = await runCommandLine(process.argv.slice(2));
