/** The scale of the load. Use BENCH_SHARE=0.1 for a quick trial with a tenth of it. */
export const SHARE = Number(process.env["BENCH_SHARE"] ?? 1);

/** The number of concurrent clients. */
export const CLIENTS = 10;

/** The number of objects to create before measuring, so that both servers have compiled their hot code. */
export const WARM_UP_CREATES = 10_000 * SHARE;
