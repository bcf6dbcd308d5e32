// Runs the embedded server of a package in a separate process, as kube-apiserver runs in one. Prints its connection and start times once it is ready.
// On SIGUSR2, collects garbage (with --expose-gc) and prints the memory in use.
const startedAt = performance.now();
const [module, dataDir] = process.argv.slice(2) as [module: string, dataDir?: string];
const { startApiServer } = (await import(module)) as typeof import("#apiserver/index.js");
const loadedAt = performance.now();
const { url, token, ca, close } = await startApiServer(dataDir === undefined ? {} : { dataDir });
const readyAt = performance.now();
console.log(JSON.stringify({ url, token, ca, loadMs: loadedAt - startedAt, startMs: readyAt - loadedAt }));
process.on("SIGUSR2", () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  console.log(JSON.stringify({ usedBytes: heapUsed + external }));
});
process.once("SIGTERM", () => void close().then(() => process.exit(0)));
