import { spawnSync } from 'node:child_process';
import dgram from 'node:dgram';
import fs from 'node:fs';
import net from 'node:net';
import { Worker } from 'node:worker_threads';

/**
 * Stands in for the interpreter when an attacker has taken it over: it says that it is ready, is sent what there is to steal, and answers what it got.
 * Everything is imported before it is ready: native code would need no file for it.
 */
const { stdin, stdout } = process;
function send(value) {
  const text = Buffer.from(JSON.stringify(value));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(text.length);
  stdout.write(Buffer.concat([head, text]));
}

const open = (socket, event) =>
  new Promise((resolve, reject) => {
    socket.once(event, () => resolve('open'));
    socket.once('error', reject);
  });
function connect(port) {
  const socket = net.connect(port, '127.0.0.1');
  return open(socket, 'connect');
}
function listen() {
  const server = net.createServer();
  server.listen(0, '127.0.0.1');
  return open(server, 'listening');
}
function bindDatagrams() {
  const socket = dgram.createSocket('udp4');
  socket.bind(0);
  return open(socket, 'listening');
}
function run(command, ...args) {
  const { error, stdout: said } = spawnSync(command, args, { encoding: 'utf8' });
  if (error) throw error;
  return said;
}
function write(file) {
  fs.writeFileSync(file, 'x');
  fs.rmSync(file);
}
const startThread = () => open(new Worker('', { eval: true }), 'online');
/** Beside the standard streams: files, folders and sockets. Node.js itself has pipes and counters. `device`: of the file system. */
function descriptors() {
  const found = [];
  for (let fd = 3; fd < 1_024; fd += 1) {
    try {
      const stat = fs.fstatSync(fd);
      if (stat.isFile() || stat.isDirectory() || stat.isSocket()) found.push({ isFolder: stat.isDirectory(), device: stat.dev });
    } catch {
      // Not open.
    }
  }
  return found;
}

const attempts = ({ files, writable, program, addon, port, pid }) => ({
  ...Object.fromEntries(files.map((file) => [`read ${file}`, () => fs.readFileSync(file, 'utf8')])),
  ...Object.fromEntries(writable.map((folder) => [`write ${folder}`, () => write(`${folder}/palestra-was-here`)])),
  'other processes': () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(process.pid)),
  'environ of the service': () => fs.readFileSync(`/proc/${pid}/environ`, 'utf8'),
  'environ of the parent': () => fs.readFileSync(`/proc/${process.ppid}/environ`, 'utf8'),
  'signal to the service': () => process.kill(pid, 0),
  connect: () => connect(port),
  listen,
  datagrams: bindDatagrams,
  shell: () => run('/bin/sh', '-c', 'id'),
  'another program': () => run(program, '--version'),
  thread: startThread,
  addon: () => process.dlopen({ exports: {} }, addon),
  'become root': () => process.setuid(0),
});

stdin.on('data', async (data) => {
  const loot = {};
  for (const [name, attempt] of Object.entries(attempts(JSON.parse(data.toString('utf8', 4))))) {
    try {
      loot[name] = { got: (await attempt()) ?? null };
    } catch (error) {
      loot[name] = { refused: String(error.code ?? error.message) };
    }
  }
  send({ loot, env: process.env, descriptors: descriptors(), uid: process.getuid() });
});
send('ready');
