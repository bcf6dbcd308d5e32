// The external services of some samples. Real ones are started for each measurement.
import { Console } from "#external/service/console.js";
import { problemWithMariaDb, startMariaDb } from "#test/support/machine/mariadb.js";
import type { SampleObject } from "./samples.js";

/** Services that run until they are disposed. */
export interface Services extends AsyncDisposable {
  /** The objects through which the operator finds the services; created before all others. */
  readonly objects: readonly SampleObject[];
}

/** Starts the console of the sample `external`, which reads its URL from the environment. */
export async function startConsole(): Promise<Services> {
  const console = await new Console().start();
  process.env["CONSOLE_URL"] = console.url;
  return { objects: [], [Symbol.asyncDispose]: () => console[Symbol.asyncDispose]() };
}

/** Starts a database server for the sample `mysql-schema`, which finds it through a Secret. Throws if this machine has none. */
export async function startDatabase(): Promise<Services> {
  const problem = problemWithMariaDb();
  if (problem !== undefined) throw new Error(problem);
  const database = await startMariaDb();
  const { host, port, administrator } = database;
  const login = { host, port: String(port), username: administrator.user, password: administrator.password };
  const namespace = "mysql-operator";
  return {
    objects: [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
      { apiVersion: "v1", kind: "Secret", metadata: { name: "mysql-administrator", namespace }, stringData: login },
    ],
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
