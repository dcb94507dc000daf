// The load generator of the store benches, a separate process: uploads rollouts (support/uploads.mjs) by `connections` clients and prints
// one JSON line. Usage: upload-load.mjs '{"url", "apiKey", "from", "count", "run", "messages", "characters", "batch", "connections"}'
import { drain, openClient } from './support/client.mjs';
import { rollout } from './support/uploads.mjs';

const { url, apiKey, from = 0, count, run, messages, characters, batch = 25, connections = 32 } = JSON.parse(process.argv[2]);
const client = openClient(url, { 'x-api-key': apiKey }, connections);
let refusals = 0;
let mostRefusals = 0;
let events = 0;
let bytes = 0;

/** Bodies are made when they are needed, as a trainer makes them. */
function* posts() {
  for (let at = from; at < from + count; at += batch) yield at;
}

const seconds = await drain(posts(), connections, async (at) => {
  const size = Math.min(batch, from + count - at);
  const sent = Array.from({ length: size }, (_, offset) => rollout(at + offset, { run, messages, characters })).flat();
  const body = JSON.stringify({ events: sent });
  const refused = await client.upload(body);
  events += sent.length;
  bytes += body.length;
  refusals += refused;
  mostRefusals = Math.max(mostRefusals, refused);
});
client.close();
console.log(JSON.stringify({ rollouts: count, events, bytes, seconds, refusals, mostRefusals }));
