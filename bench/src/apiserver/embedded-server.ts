// Runs the embedded server of a package in a process of its own, as kube-apiserver runs in one; prints its connection once it is ready, with how
// long that took in this process. On SIGUSR2 it collects garbage, if it may, and prints how much memory is left in use.
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
