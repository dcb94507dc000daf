/**
 * A small ORS server for `node -e`, as a process that a test can stop and kill. `/ran` lists the calls of its tool, which takes `ms` and
 * with `block` blocks the event loop.
 */
export const ORS_PROCESS = `
  const sessions = new Set(), ran = [];
  const server = require('node:http').createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    const sid = request.headers['x-session-id'], input = JSON.parse(text || '{}');
    const json = (body, status = 200) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    switch (request.url) {
      case '/list_environments': return json(['a']);
      case '/version': return json({ version: 'x' });
      case '/a/tools': return json({ tools: [{ name: 't', description: '', input_schema: null }] });
      case '/a/splits': return json([{ name: 'train', type: 'train' }]);
      case '/a/num_tasks': return json({ num_tasks: 1 });
      case '/a/tasks': return json({ tasks: [{ ms: 0 }], env_name: 'a' });
      case '/ran': return json(ran);
      case '/sessions': return json([...sessions]);
      case '/delete': return sessions.delete(sid), json({ sid });
      case '/create':
        if (sessions.has(sid)) return json({ detail: 'Session already exists' }, 400);
        sessions.add(sid);
        return setTimeout(json, input.task_spec.ms, { sid });
      case '/a/prompt': return setTimeout(json, Number(process.env.PROMPT_MS || 0), []);
      case '/a/call': {
        if (input.task_id === undefined) ran.push(input.input.ms);
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('event: task_id\\r\\ndata: 7\\r\\n\\r\\n');
        if (input.input.block) setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, input.input.ms), 50);
        const beat = setInterval(() => response.write(': ping\\r\\n\\r\\n'), 200);
        return setTimeout(() => {
          clearInterval(beat);
          response.end('event: end\\r\\ndata: {"ok":true,"output":{"blocks":[],"metadata":null,"reward":null,"finished":false}}\\r\\n\\r\\n');
        }, input.input.ms);
      }
      default: return json({ detail: 'Not Found' }, 404);
    }
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: Number(process.env.BACKLOG || 511) }, () => console.log(server.address().port));
`;
