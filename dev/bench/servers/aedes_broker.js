// aedes as the benchmarks run it: loopback, TCP_NODELAY.
//     node aedes_broker.js PORT
const net = require('node:net')
const { Aedes } = require('aedes')

Aedes.createBroker().then((broker) => {
  net.createServer({ noDelay: true }, broker.handle).listen(Number(process.argv[2]), '127.0.0.1')
})
