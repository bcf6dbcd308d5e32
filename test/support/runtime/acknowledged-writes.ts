// Clients that record the acknowledged writes and observed events of an API server, for tests in which that server is killed.
import { apiRequest, createAgent, type ApiObject, type Connection } from "../api/api-request.js";
import { openWatch } from "../api/watch-client.js";
import { CONFIG_MAPS } from "../api/api-fixtures.js";

/** The state of an object according to the responses to its writes. */
interface Known {
  /** The value of the last acknowledged write; undefined if the write deleted the object. */
  value: string | undefined;
  /** The value of a write in progress; `deleted` for a deletion. */
  attempted: string | undefined;
  uid: string | undefined;
}

/** The state of a server as observed by clients. */
export interface Witness {
  /** Writes and watches until the server is killed. */
  run(connection: Connection): Promise<void>;
  /** Lists the differences between the recorded state and that of the restarted server. */
  contradictions(connection: Connection): Promise<string[]>;
  /** The number of acknowledged writes. */
  readonly acknowledged: number;
  /** The newest resourceVersion in any response or event. */
  readonly newest: number;
}

const DELETED = "(deleted)";

/** Creates clients that create, update, and delete their own objects, one object after the other. */
export function createWitness({ writers }: { writers: number }): Witness {
  const known = new Map<string, Known>();
  let acknowledged = 0;
  let newest = 0;
  let last = 0;
  const shown = (object: ApiObject): void => {
    newest = Math.max(newest, Number(object.metadata.resourceVersion));
  };

  async function write(connection: Connection, agent: ReturnType<typeof createAgent>): Promise<void> {
    const name = `w${++last}`;
    const state: Known = { value: undefined, attempted: undefined, uid: undefined };
    known.set(name, state);
    for (const verb of ["POST", "PUT", "PATCH", ...(last % 3 === 0 ? ["DELETE"] : [])]) {
      const value = `${verb}-${"x".repeat(last % 700)}`;
      state.attempted = verb === "DELETE" ? DELETED : value;
      const path = verb === "POST" ? CONFIG_MAPS : `${CONFIG_MAPS}/${name}`;
      const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { value } };
      const patch = verb === "PATCH" ? { contentType: "application/merge-patch+json" } : {};
      const answer = await apiRequest(connection, `${verb} ${path}`, {
        agent,
        ...patch,
        ...(verb === "DELETE" ? {} : { body }),
      });
      if (answer.status >= 300) throw new Error(`${verb} ${name}: ${answer.text}`);
      acknowledged++;
      state.value = verb === "DELETE" ? undefined : value;
      state.attempted = undefined;
      if (verb !== "DELETE") {
        shown(answer.body);
        state.uid = answer.body.metadata.uid;
      }
    }
  }

  async function writeUntilGone(connection: Connection): Promise<void> {
    const agent = createAgent(connection);
    try {
      for (;;) await write(connection, agent);
    } catch (error) {
      if (isLost(error)) return;
      throw error;
    } finally {
      agent.destroy();
    }
  }

  async function watchUntilGone(connection: Connection): Promise<void> {
    try {
      using watch = await openWatch(connection, `${CONFIG_MAPS}?watch=true`);
      for (let event = await watch.next(); event !== undefined; event = await watch.next()) shown(event.object);
    } catch {
      // The connection was closed when the server was killed.
    }
  }

  return {
    get acknowledged() {
      return acknowledged;
    },
    get newest() {
      return newest;
    },
    async run(connection) {
      const all = Array.from({ length: writers }, () => writeUntilGone(connection));
      await Promise.all([watchUntilGone(connection), ...all]);
    },
    async contradictions(connection) {
      const { body } = await apiRequest(connection, `GET ${CONFIG_MAPS}`);
      const found = new Map(
        (body.items ?? []).map((item) => [item.metadata.name, item as ApiObject & { data?: { value: string } }]),
      );
      const problems: string[] = [];
      if (Number(body.metadata.resourceVersion) < newest)
        problems.push(`revision ${body.metadata.resourceVersion} is before ${newest}, which was shown`);
      for (const [name, { value, attempted, uid }] of known) {
        const object = found.get(name);
        const actual = object?.data?.value;
        const isAttempted = attempted !== undefined && actual === (attempted === DELETED ? undefined : attempted);
        if (actual !== value && !isAttempted) problems.push(`${name} is ${actual}, acknowledged was ${value}`);
        if (uid !== undefined && object !== undefined && object.metadata.uid !== uid)
          problems.push(`${name} has another uid`);
        // The server must keep the state that it has now.
        known.set(name, { value: actual, attempted: undefined, uid: object?.metadata.uid });
      }
      return problems;
    },
  };
}

function isLost(error: unknown): boolean {
  return /ECONNRESET|ECONNREFUSED|EPIPE|socket hang up/.test(`${(error as { code?: string }).code} ${String(error)}`);
}
