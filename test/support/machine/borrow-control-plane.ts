import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { shared } from "../suite.js";
import { ControlPlanePool, type BorrowOptions } from "./control-plane-pool.js";
import type { ControlPlane } from "./control-plane.js";
import { LENDER, type Loan } from "./lend-control-planes.js";

/** The pool of a test file that is run directly, without the runner. */
const ownPool = shared(() => Promise.resolve(new ControlPlanePool()));

/**
 * Returns a control plane of the test run in the same state as one of `startControlPlane`; `close` returns it to the pool.
 *
 * Tests can use it if they need no other options and do not inspect the processes. Only resourceVersions reveal that it has been used before.
 */
export async function borrowControlPlane(options: BorrowOptions = {}): Promise<ControlPlane> {
  const path = process.env[LENDER];
  if (path === undefined) return (await ownPool()).borrow(options);
  const socket = connect(path);
  const closed = once(socket, "close");
  socket.write(`${JSON.stringify(options)}\n`);
  const [line] = (await once(createInterface(socket), "line")) as [string];
  const loan = JSON.parse(line) as Loan;
  if ("error" in loan) throw new Error(loan.error);
  const close = async () => {
    socket.end();
    await closed;
  };
  return { ...loan.plane, close, [Symbol.asyncDispose]: close };
}
