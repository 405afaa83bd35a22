module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<128x256xf32>) -> (tensor<128x256xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%arg0, %0) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %1 = "stablehlo.maximum"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%1) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<128x256xf32>, tensor<f32>) -> tensor<128xf32>
    %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64: 0>} : (tensor<128xf32>) -> tensor<128x256xf32>
    %4 = "stablehlo.subtract"(%arg0, %3) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %5 = "stablehlo.exponential"(%4) : (tensor<128x256xf32>) -> tensor<128x256xf32>
    %6 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %8 = "stablehlo.reduce"(%5, %6) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %7 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<128x256xf32>, tensor<f32>) -> tensor<128xf32>
    %9 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64: 0>} : (tensor<128xf32>) -> tensor<128x256xf32>
    %10 = "stablehlo.divide"(%5, %9) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    "func.return"(%10) : (tensor<128x256xf32>) -> ()
  }
}
