# yosys: synthesizes a multiplier.
programs=yosys
packages=yosys
licence=ISC

run() {
  echo 'module top(input clk, input [7:0] a, b, output reg [15:0] y);
    always @(posedge clk) y <= a * b + {b, a};
  endmodule' >input.v
  record yosys -q -p 'read_verilog input.v; synth_ice40 -top top -json output.json'
}
