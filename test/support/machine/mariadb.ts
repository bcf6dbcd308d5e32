// A MariaDB server for a test: a process with a temporary folder, never a system service.
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { createConnection, format, type RowDataPacket } from "mysql2/promise";
import { waitFor } from "#apiserver/wait-for.js";
import { freePorts } from "./free-ports.js";
import { createProcessGroup, type ProcessGroup, type Program } from "./process-group.js";

/** The credentials of a user, and the database to use. */
export interface MariaDbLogin {
  readonly user: string;
  readonly password: string;
  readonly database?: string;
}

/** A server that tests can stop and start again. Its data is kept until it is disposed. */
export interface MariaDb extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** The credentials of a user with all privileges. */
  readonly administrator: MariaDbLogin;
  /** Runs a statement, by default as the administrator, and returns its rows. */
  query(sql: string, values?: readonly unknown[], login?: MariaDbLogin): Promise<RowDataPacket[]>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const INIT_FILE = "init.sql";
const ADMINISTRATOR: MariaDbLogin = { user: "administrator", password: "it's \\ safe" };
/** The folders in which packages install the programs, including those that are often missing in PATH. */
const FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
/** Options that trade durability for speed. */
const FAST = ["--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"];

/** Returns why no server can be started on this machine; undefined if one can. */
export function problemWithMariaDb(): string | undefined {
  const missing = ["mariadbd", "mariadb-install-db", "my_print_defaults"].filter((name) => find(name) === undefined);
  if (missing.length === 0) return undefined;
  return `there is no ${missing.join(", no ")}; Debian has them in mariadb-server-core and mariadb-client-core`;
}

/** Starts an empty server. */
export async function startMariaDb(): Promise<MariaDb> {
  const group = await createProcessGroup("gen-operator-mariadb-", memoryFolder());
  try {
    await install(group);
    const [port = 0] = await freePorts(1);
    const server = createServer(group, port);
    await server.start();
    return server;
  } catch (error) {
    await group.close();
    throw error;
  }
}

function createServer(group: ProcessGroup, port: number): MariaDb {
  let program: Program | undefined;
  const query: MariaDb["query"] = async (sql, values = [], login = ADMINISTRATOR) => {
    await using connection = await createConnection({ host: HOST, port, ...login });
    const [rows] = await connection.query<RowDataPacket[]>(sql, [...values]);
    return rows;
  };
  return {
    host: HOST,
    port,
    administrator: ADMINISTRATOR,
    query,
    async start() {
      const started = (program = group.start("mariadbd", findOrThrow("mariadbd"), argumentsOf(group, port)));
      await waitFor("the server answers", async () => {
        const problem = await started.problem();
        if (problem !== undefined) throw new Error(problem);
        return query("SELECT 1").catch(() => undefined);
      });
    },
    stop: async () => program?.stop(),
    [Symbol.asyncDispose]: () => group.close(),
  };
}

/** Creates the system tables, and the file of statements to run at each start. */
async function install({ folder }: ProcessGroup): Promise<void> {
  const rootByPassword = "--auth-root-authentication-method=normal";
  const flags = ["--no-defaults", ...asUser(), rootByPassword, "--skip-test-db", "--skip-name-resolve", ...FAST];
  await promisify(execFile)(findOrThrow("mariadb-install-db"), [...flags, `--datadir=${join(folder, "data")}`]);
  const { user, password } = ADMINISTRATOR;
  const statements = [
    format("CREATE USER IF NOT EXISTS ?@'%' IDENTIFIED BY ?", [user, password]),
    format("GRANT ALL ON *.* TO ?@'%' WITH GRANT OPTION", [user]),
  ];
  await writeFile(join(folder, INIT_FILE), statements.map((each) => `${each};\n`).join(""));
}

function argumentsOf({ folder }: ProcessGroup, port: number): string[] {
  return [
    "--no-defaults",
    ...asUser(),
    `--datadir=${join(folder, "data")}`,
    `--init-file=${join(folder, INIT_FILE)}`,
    `--socket=${join(folder, "mariadbd.sock")}`,
    `--pid-file=${join(folder, "mariadbd.pid")}`,
    `--bind-address=${HOST}`,
    `--port=${port}`,
    "--skip-name-resolve",
    "--skip-log-bin",
    "--skip-performance-schema",
    "--innodb-buffer-pool-size=8M",
    ...FAST,
  ];
}

// The server refuses to run as root without this option.
function asUser(): string[] {
  return process.getuid?.() === 0 ? ["--user=root"] : [];
}

// A new server writes hundreds of small files and syncs each of them, so use a file system in memory.
function memoryFolder(): string | undefined {
  return isThere("/dev/shm", constants.W_OK | constants.X_OK) ? "/dev/shm" : undefined;
}

function find(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...FOLDERS];
  return folders.map((folder) => join(folder, name)).find((path) => isThere(path, constants.X_OK));
}

function findOrThrow(name: string): string {
  const path = find(name);
  if (path === undefined) throw new Error(`${name} not found: ${problemWithMariaDb()}`);
  return path;
}

function isThere(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
