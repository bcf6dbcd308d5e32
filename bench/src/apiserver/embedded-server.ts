// Runs the embedded server in a process of its own, as kube-apiserver runs in one; prints its connection once it is ready.
import { startApiServer } from "#apiserver/index.js";

const { url, token, ca, close } = await startApiServer();
console.log(JSON.stringify({ url, token, ca }));
process.once("SIGTERM", () => void close().then(() => process.exit(0)));
