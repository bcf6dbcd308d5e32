import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A program that runs as a child process and communicates by IPC messages. */
export interface Child extends AsyncDisposable {
  send(message: object): void;
  /** Waits for the next message; rejects if the process exits first. */
  receive<Message>(): Promise<Message>;
}

/** Starts `module` as a child process; its only argument is `settings` as JSON. */
export function startChild(module: URL, settings: object, nodeArguments: readonly string[] = []): Child {
  const child: ChildProcess = fork(fileURLToPath(module), [JSON.stringify(settings)], {
    execArgv: [...nodeArguments],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const killAtExit = () => void child.kill("SIGKILL");
  process.once("exit", killAtExit);
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const messages: unknown[] = [];
  let waiting: { resolve: (message: never) => void; reject: (reason: Error) => void } | undefined;
  child.on("message", (message) => {
    if (waiting === undefined) messages.push(message);
    else waiting.resolve(message as never);
    waiting = undefined;
  });
  void ended.then(() => {
    process.off("exit", killAtExit);
    waiting?.reject(new Error(`${module.pathname} ended with ${child.exitCode ?? child.signalCode}`));
  });
  return {
    send: (message) => void child.send(message),
    receive: () =>
      messages.length > 0
        ? Promise.resolve(messages.shift() as never)
        : new Promise((resolve, reject) => (waiting = { resolve, reject })),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended;
    },
  };
}
