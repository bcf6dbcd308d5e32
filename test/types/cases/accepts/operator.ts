import { createOperator, type ApiClient, type ConnectedOperator } from "@gen-operator/runtime";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;

const unconnected = createOperator({ controllers: [] });
const connected = createOperator({ controllers: [], connection: { url: "http://127.0.0.1:1", token: "t" } });

// Before the start there is a client only if the connection is stated.
export type Before = Expect<Equal<typeof unconnected.client, ApiClient | undefined>>;
export type Stated = Expect<Equal<typeof connected.client, ApiClient>>;
export type After = Expect<Equal<Awaited<ReturnType<typeof unconnected.start>>, ConnectedOperator>>;
export type Client = Expect<Equal<ConnectedOperator["client"], ApiClient>>;
