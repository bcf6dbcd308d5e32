// Shares a pool of control planes between all processes of a test run. The runner listens on a socket, and test processes connect to it to borrow
// one. Each connection is a loan: the client sends a line with the options, and receives a line with the control plane or an error. Closing the
// connection, which also happens if the process exits, returns the control plane.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ControlPlanePool, type BorrowOptions } from "./control-plane-pool.js";
import type { ControlPlane } from "./control-plane.js";

/** The environment variable with the path of the socket. */
export const LENDER = "TEST_CONTROL_PLANE_SOCKET";

/** The response of the lender. */
export type Loan = { readonly plane: Omit<ControlPlane, "close" | typeof Symbol.asyncDispose> } | { error: string };

/** Lends control planes until it is disposed. */
export interface Lender extends AsyncDisposable {
  /** The path of the socket. */
  readonly path: string;
}

/** Starts lending control planes. They are started on demand. */
export async function lendControlPlanes(): Promise<Lender> {
  const pool = new ControlPlanePool();
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-planes-"));
  const path = join(folder, "socket");
  const loans = new Set<Promise<void>>();
  const server = createServer((socket) => {
    const loan = lend(socket, pool).finally(() => loans.delete(loan));
    loans.add(loan);
  });
  server.listen(path);
  await once(server, "listening");
  return {
    path,
    async [Symbol.asyncDispose]() {
      server.close();
      await Promise.all(loans);
      await pool[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function lend(socket: Socket, pool: ControlPlanePool): Promise<void> {
  const closed = new Promise<void>((done) => socket.once("close", () => done()));
  // The connection may be reset when a process exits.
  socket.on("error", () => {});
  const [line] = (await Promise.race([once(createInterface(socket), "line"), closed])) ?? [];
  if (line === undefined) return;
  const answer = (loan: Loan) => void (socket.destroyed || socket.write(`${JSON.stringify(loan)}\n`));
  try {
    await using plane = await pool.borrow(JSON.parse(String(line)) as BorrowOptions);
    answer({ plane });
    await closed;
  } catch (error) {
    answer({ error: String(error) });
    socket.end();
  }
}
