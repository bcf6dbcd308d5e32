// A service outside Kubernetes, over HTTP: accounts in memory, that belong to owners, with faults on request.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An account as the service answers it. */
export interface Account {
  readonly id: string;
  readonly owner: string;
  readonly value: string;
}

/** What a caller states of an account; the service gives an id to one without. */
export type AccountDraft = Omit<Account, "id"> & { readonly id?: string };

/** What goes wrong with a request: it is refused, or it is done and the answer is a failure. */
export type Fault = "refused" | "failedAfterwards";

/** A running service, with a client for it. */
export interface AccountService extends AsyncDisposable {
  /** Every change that was asked for: method and id, or owner for one that has no id yet. */
  readonly changes: string[];
  /** What goes wrong with requests of a method, as long as it stands here. */
  readonly faults: Map<string, Fault>;
  /** The accounts that there are, by their ids. */
  readonly accounts: Map<string, Account>;
  list(owner?: string): Promise<Account[]>;
  get(id: string): Promise<Account | undefined>;
  create(draft: AccountDraft): Promise<Account>;
  update(account: Account): Promise<Account>;
  delete(id: string): Promise<void>;
}

/** Starts a service that has no accounts. */
export async function startAccountService(): Promise<AccountService> {
  const accounts = new Map<string, Account>();
  const faults = new Map<string, Fault>();
  const changes: string[] = [];
  let next = 1;
  const answer = async (request: IncomingMessage): Promise<[status: number, body?: unknown]> => {
    const { method = "", url = "" } = request;
    const { pathname, searchParams } = new URL(url, "http://service");
    const id = decodeURIComponent(pathname.split("/")[2] ?? "");
    const owner = searchParams.get("owner");
    if (faults.get(method) === "refused") return [503];
    const found = accounts.get(id);
    if (method === "GET") {
      if (id === "") return [200, [...accounts.values()].filter((each) => owner === null || each.owner === owner)];
      return found === undefined ? [404] : [200, found];
    }
    const draft = JSON.parse((await textOf(request)) || "{}") as AccountDraft;
    changes.push(`${method} ${id === "" ? (draft.id ?? draft.owner) : id}`);
    if (method === "DELETE") return accounts.delete(id) ? [204] : [404];
    if (method === "PUT" && found === undefined) return [404];
    if (method === "POST" && accounts.has(draft.id ?? "")) return [409];
    const account = { ...draft, id: method === "PUT" ? id : (draft.id ?? `id-${next++}`) };
    accounts.set(account.id, account);
    return [method === "POST" ? 201 : 200, account];
  };
  const server = createServer((request, response: ServerResponse) => {
    void answer(request).then(([status, body]) => {
      const isFailed = faults.get(request.method ?? "") === "failedAfterwards";
      response.writeHead(isFailed ? 500 : status, { connection: "close" });
      response.end(body === undefined ? "" : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/accounts`;
  const send = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${base}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.status === 404) return undefined;
    if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  const pathOf = (id: string) => `/${encodeURIComponent(id)}`;
  return {
    ...{ accounts, faults, changes },
    list: async (owner) =>
      (await send("GET", owner === undefined ? "" : `?owner=${encodeURIComponent(owner)}`)) as Account[],
    get: async (id) => (await send("GET", pathOf(id))) as Account | undefined,
    create: async (draft) => (await send("POST", "", draft)) as Account,
    update: async (account) => (await send("PUT", pathOf(account.id), account)) as Account,
    delete: async (id) => void (await send("DELETE", pathOf(id))),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}
